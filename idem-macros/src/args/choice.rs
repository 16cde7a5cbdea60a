//! Words that an argument accepts, as the parser matches them and as messages list them.

use proc_macro2::{Ident, TokenStream};
use syn::{parenthesized, parse::ParseStream, token};

pub(super) struct Choice<T> {
    shown: &'static str,
    read: Read<T>,
}

enum Read<T> {
    Word(fn() -> T),
    Marked(fn(&Ident) -> T),
    Inner(fn(ParseStream<'_>) -> syn::Result<T>),
}

impl<T> Choice<T> {
    /// A bare word.
    pub(super) fn word(word: &'static str, value: fn() -> T) -> Self {
        Self { shown: word, read: Read::Word(value) }
    }

    /// A bare word whose place is needed later, for a rule that it may break.
    pub(super) fn marked(word: &'static str, value: fn(&Ident) -> T) -> Self {
        Self { shown: word, read: Read::Marked(value) }
    }

    /// A word with something in parentheses, given as an example of both.
    pub(super) fn with(example: &'static str, inner: fn(ParseStream<'_>) -> syn::Result<T>) -> Self {
        Self { shown: example, read: Read::Inner(inner) }
    }

    pub(super) fn shown(&self) -> &'static str {
        self.shown
    }

    pub(super) fn name(&self) -> &'static str {
        self.shown.split_once('(').map_or(self.shown, |(name, _)| name)
    }

    /// Reads what follows `word`.
    pub(super) fn read(&self, word: &Ident, input: ParseStream<'_>) -> syn::Result<T> {
        match (&self.read, input.peek(token::Paren)) {
            (Read::Word(value), false) => Ok(value()),
            (Read::Marked(value), false) => Ok(value(word)),
            (Read::Word(_) | Read::Marked(_), true) => {
                Err(syn::Error::new_spanned(word, format_args!("`{word}` takes nothing in parentheses")))
            }
            (Read::Inner(read), true) => {
                let inner;
                parenthesized!(inner in input);
                if inner.is_empty() {
                    return Err(self.incomplete(word));
                }
                let value = read(&inner);
                inner.parse::<TokenStream>()?; // else syn reports what an error has left unread a second time
                value
            }
            (Read::Inner(_), false) => Err(self.incomplete(word)),
        }
    }

    fn incomplete(&self, word: &Ident) -> syn::Error {
        syn::Error::new_spanned(word, format_args!("`{word}` needs a value in parentheses: `{}`", self.shown))
    }
}
