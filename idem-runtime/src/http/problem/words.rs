//! What a problem says in words.

use crate::{
    error::{Error, ErrorKind, Fate},
    http::config::HttpConfig,
    operation::{self, KeyFormat},
};

/// What a caller can make use of: never a source, which may name tables, files or hosts.
pub(super) fn detail(error: &Error, config: &HttpConfig, settles_itself: bool) -> String {
    let about_the_key = about_the_key(error, config);
    let advice = match error.kind() {
        _ if about_the_key.is_some() => about_the_key.as_deref().unwrap_or_default(),
        _ if matches!(error.about().fate, Some(Fate::Unknown | Fate::RunAgain)) => {
            "It may have taken effect. Send the same request with the same key again: it does not happen twice."
        }
        _ if settles_itself => {
            "It may have taken effect; that is being found out. Send the same request with the same key again, not with a new one: it could happen twice."
        }
        _ if error.about().fate == Some(Fate::Undone) => {
            "Nothing of it is kept. Send the same request with the same key again."
        }
        ErrorKind::MissingKey => "Send a new, unique key, the same one on every retry of this action.",
        ErrorKind::InvalidKey => "Send 1 to 255 visible ASCII characters, a UUID for instance.",
        ErrorKind::Mismatch => "Use a new key for a new action, and the first payload for a retry.",
        ErrorKind::InProgress { .. } => "Send the same request with the same key again.",
        ErrorKind::InDoubt => {
            "It may have taken effect and is not run again by itself. Do not use a new key: it could happen twice."
        }
        ErrorKind::ResultUnavailable => "The operation is settled; its answer cannot be sent again.",
        ErrorKind::Expired => {
            "The operation was settled; the retry came too late to be answered, and is not run again."
        }
        ErrorKind::Released => "Nothing of it is kept. Send the same request with the same key again.",
        ErrorKind::UnknownOperation => "Check the address: a 202, or a problem of the caller's own, has named it.",
        ErrorKind::Unavailable { .. } | ErrorKind::Draining if error.about().body_ran => {
            "The operation ran, at least in part. Send the same request with the same key again."
        }
        ErrorKind::Unavailable { .. } => "This request was not run. Send it again with the same key.",
        ErrorKind::Draining => "Nothing was run. Send the same request with the same key again.",
        ErrorKind::TimedOut | ErrorKind::Panicked => "It may have taken effect and is not run again by itself.",
        ErrorKind::TooLarge | ErrorKind::OrderUnreadable => "This request was not run.",
        ErrorKind::Unreadable => "This request was not run. Send the whole of it again with the same key.",
        ErrorKind::Unverified => {
            "This request was not run. Sign the body exactly as it is sent, with the secret of this endpoint."
        }
        ErrorKind::InvalidEvent => "The signature holds, but nothing was done.",
        ErrorKind::ReplayForbidden => "The caller's rights have changed since the first request.",
        ErrorKind::InvalidLink => "It may have taken effect and is not run again by itself.",
        ErrorKind::Conflict => "Look at the record again before deciding.",
        ErrorKind::Transaction if error.about().body_ran => {
            "Part of it may be kept, and would be written again by a retry. This is a fault of the service."
        }
        ErrorKind::InvalidBatch
        | ErrorKind::Transaction
        | ErrorKind::Step
        | ErrorKind::NotServed
        | ErrorKind::Store => "This is a fault of the service.",
    };
    match error.about().detail {
        Some(detail) => format!("{advice} ({detail})"),
        None => advice.to_owned(),
    }
}

/// Where the key goes and what it looks like, for a client that sent none or a bad one. `None` where no header carries it.
fn about_the_key(error: &Error, config: &HttpConfig) -> Option<String> {
    let operation = error.about().op.and_then(operation::named).filter(|operation| operation.key.is_none())?;
    let header = operation.header.unwrap_or(&config.header_as_written);
    let form = match operation.key_format {
        KeyFormat::Any => "1 to 255 visible ASCII characters, a UUID for instance",
        KeyFormat::Uuid => "a hyphenated UUID",
    };
    match error.kind() {
        ErrorKind::MissingKey => Some(format!(
            "Send a new, unique key in the header `{header}` ({form}), the same one on every retry of this action."
        )),
        ErrorKind::InvalidKey => Some(format!("Send {form}, in the header `{header}`.")),
        _ => None,
    }
}
