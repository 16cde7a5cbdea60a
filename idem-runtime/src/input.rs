//! The argument by which a plain function can be called again, when nobody else does.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;

use crate::error::{Error, ErrorKind};

/// An argument that can be kept.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept as the `input` of a function",
    label = "it is stored as JSON, so it must be `serde::Serialize`",
    note = "for a type of your own, add `#[derive(serde::Serialize, serde::Deserialize)]`"
)]
pub trait StoredInput {
    #[doc(hidden)]
    fn to_json(&self) -> Result<Vec<u8>, serde_json::Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> StoredInput for T {
    fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

/// An argument as it is to be kept, if one is, or why it cannot be.
#[must_use]
#[derive(Default)]
pub struct Input(Option<Result<Vec<u8>, serde_json::Error>>);

/// Its size only.
impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_ref().and_then(|json| json.as_ref().ok()).map(Vec::len);
        f.debug_struct("Input").field("bytes", &bytes).finish_non_exhaustive()
    }
}

impl Input {
    pub(crate) fn of<T: StoredInput + ?Sized>(argument: &T) -> Self {
        Self(Some(argument.to_json()))
    }

    /// What is kept with the claim: at most `max` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`], or [`ErrorKind::Unreadable`] if it is no JSON: nobody could go on with the operation, so it
    /// is not begun.
    pub(crate) fn within(self, max: u64) -> Result<Option<Bytes>, Error> {
        let refused = |kind, detail| Error::new(kind).with(|about| about.detail = Some(detail));
        match self.0.transpose() {
            Ok(Some(json)) if json.len() as u64 > max => {
                Err(refused(ErrorKind::TooLarge, "the function's `input` is longer than `max_input`"))
            }
            Ok(json) => Ok(json.map(Bytes::from)),
            Err(error) => Err(refused(ErrorKind::Unreadable, "the function's `input` cannot be written as JSON")
                .with(|about| about.source = Some(Box::new(error)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn clause_25_an_input_is_kept_up_to_its_limit() {
        assert_eq!(Input::default().within(0).unwrap(), None);
        assert_eq!(Input::of("abc").within(5).unwrap().as_deref(), Some(&b"\"abc\""[..]));
        let refused = Input::of("abc").within(4).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        assert!(refused.to_string().contains("`max_input`"), "{refused}");
    }

    #[test]
    fn clause_25_an_input_that_is_no_json_is_refused() {
        let refused = Input::of(&HashMap::from([((1, 2), 3)])).within(100).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unreadable);
        assert!(std::error::Error::source(&refused).is_some());
    }

    #[test]
    fn an_input_is_not_shown() {
        assert_eq!(format!("{:?}", Input::of("s3cret")), "Input { bytes: Some(8), .. }");
    }
}
