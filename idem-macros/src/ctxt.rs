//! Collects errors, so that one compile shows all of them, and holds what an argument may say only once.

use std::{cell::RefCell, fmt::Display};

use proc_macro2::{Ident, Span};
use quote::ToTokens;

/// The errors so far. Dropping it without [`Ctxt::check`] is a bug in this crate, and panics.
pub(crate) struct Ctxt {
    errors: RefCell<Option<Vec<syn::Error>>>, // `None` once checked
}

impl Ctxt {
    pub(crate) fn new() -> Self {
        Self { errors: RefCell::new(Some(Vec::new())) }
    }

    /// Reports `message` on all of `tokens`.
    pub(crate) fn error(&self, tokens: impl ToTokens, message: impl Display) {
        self.syn_error(syn::Error::new_spanned(tokens, message));
    }

    /// Reports that something is missing: only then is the whole attribute the place.
    pub(crate) fn missing(&self, message: impl Display) {
        self.syn_error(syn::Error::new(Span::call_site(), message));
    }

    pub(crate) fn syn_error(&self, error: syn::Error) {
        if let Some(errors) = &mut *self.errors.borrow_mut() {
            errors.push(error);
        }
    }

    /// All errors as one, or the `value`, which is there if nothing was reported.
    pub(crate) fn check<T>(self, value: Option<T>) -> syn::Result<T> {
        let errors = self.errors.take().unwrap_or_default();
        let all = errors.into_iter().reduce(|mut all, error| {
            all.combine(error);
            all
        });
        match (all, value) {
            (None, Some(value)) => Ok(value),
            (Some(errors), _) => Err(errors),
            (None, None) => Err(syn::Error::new(Span::call_site(), "internal error in `#[idempotent]`, report it")),
        }
    }
}

impl Drop for Ctxt {
    fn drop(&mut self) {
        assert!(std::thread::panicking() || self.errors.borrow().is_none(), "errors were not checked");
    }
}

/// What one argument says. It can be set once; a bad value counts as said, so that it is not reported as missing too.
pub(crate) struct Attr<T> {
    key: Option<Ident>,
    value: Option<T>,
}

impl<T> Default for Attr<T> {
    fn default() -> Self {
        Self { key: None, value: None }
    }
}

impl<T> Attr<T> {
    /// Takes the value that follows `key`.
    pub(crate) fn set(&mut self, key: &Ident, value: syn::Result<T>) -> syn::Result<()> {
        if self.key.is_some() {
            return Err(syn::Error::new_spanned(key, format_args!("duplicate `{key}` argument")));
        }
        self.key = Some(key.clone());
        self.value = Some(value?);
        Ok(())
    }

    /// The argument's name where the user wrote it, even if its value is bad.
    pub(crate) fn key(&self) -> Option<&Ident> {
        self.key.as_ref()
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    pub(crate) fn into_value(self) -> Option<T> {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "errors were not checked")]
    fn a_forgotten_check_panics() {
        drop(Ctxt::new());
    }

    #[test]
    fn all_errors_come_out() {
        let cx = Ctxt::new();
        cx.missing("first");
        cx.error(quote::quote!(a b), "second");
        let errors = cx.check(Some(())).unwrap_err();
        assert_eq!(errors.into_iter().map(|e| e.to_string()).collect::<Vec<_>>(), ["first", "second"]);
    }
}
