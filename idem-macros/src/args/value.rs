//! Reads the value of one argument, whatever its kind.

use std::fmt::Display;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{
    Expr, LitStr, Path, Token, Type,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream, discouraged::Speculative},
    token,
};

use super::{Order, Scope, Seconds, Value, choice::Choice, text};

/// An argument whose name has been read.
pub(super) struct Source<'a> {
    pub(super) key: &'a Ident,
    pub(super) example: &'static str,
    pub(super) input: ParseStream<'a>,
}

impl Source<'_> {
    /// A word without a value.
    pub(super) fn flag(&self) -> syn::Result<()> {
        if self.input.peek(Token![=]) || self.input.peek(token::Paren) {
            skip(self.input);
            let key = self.key;
            let message = format_args!("`{key}` takes no value\nhelp: write `{key}`, or leave it out");
            return Err(syn::Error::new_spanned(key, message));
        }
        Ok(())
    }

    pub(super) fn string(&self) -> syn::Result<LitStr> {
        self.equals()?;
        self.whole().ok_or_else(|| self.wrong_kind("a string"))
    }

    pub(super) fn duration(&self) -> syn::Result<Seconds> {
        text::seconds(&self.key.to_string(), self.example, self.string()?)
    }

    pub(super) fn expr(&self) -> syn::Result<Expr> {
        self.equals()?;
        self.input.parse()
    }

    pub(super) fn ty(&self) -> syn::Result<Type> {
        self.equals()?;
        self.whole().ok_or_else(|| self.wrong_kind("a type"))
    }

    pub(super) fn value(&self) -> syn::Result<Value> {
        self.equals()?;
        match self.whole() {
            Some(name) => Ok(Value::Named(name)),
            None => self.input.parse().map(ungrouped).map(Value::Expr),
        }
    }

    pub(super) fn scope(&self) -> syn::Result<Scope> {
        match self.value()? {
            Value::Expr(Expr::Path(path)) if path.path.is_ident("global") => Ok(Scope::Global),
            value => Ok(Scope::Of(value)),
        }
    }

    /// Two JSON pointers in parentheses.
    pub(super) fn order(&self) -> syn::Result<Order> {
        self.equals()?;
        let ahead = self.input.fork();
        let pair = |ahead: ParseStream<'_>| {
            let inner;
            parenthesized!(inner in ahead);
            inner.parse_terminated(<LitStr as Parse>::parse, Token![,])
        };
        let pointers: Vec<LitStr> = match pair(&ahead) {
            Ok(pointers) if at_end(&ahead) => pointers.into_iter().collect(),
            _ => return Err(self.wrong_kind("two JSON pointers")),
        };
        let [object, sequence] = &pointers[..] else { return Err(self.wrong_kind("two JSON pointers")) };
        let order = Order { object: object.clone(), sequence: sequence.clone() };
        self.input.advance_to(&ahead);
        text::check_pointers(&pointers).map(|()| order)
    }

    /// A path that means the same wherever the expansion writes it.
    pub(super) fn absolute_path(&self) -> syn::Result<Path> {
        self.equals()?;
        let ahead = self.input.fork();
        let path = match ahead.call(Path::parse_mod_style) {
            Ok(path) if at_end(&ahead) => path,
            _ => return Err(self.wrong_kind("a path")),
        };
        self.input.advance_to(&ahead);
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let first = names.first().map_or("", String::as_str);
        if path.leading_colon.is_some() || matches!(first, "crate" | "$crate") {
            return Ok(path);
        }
        let found = names.join("::");
        let help = match first {
            "self" | "super" | "Self" => "start it with `crate::`".to_owned(),
            _ => format!("write `crate = ::{found}`, or `crate = crate::{found}` for a module of this crate"),
        };
        Err(syn::Error::new_spanned(
            &path,
            format_args!("`crate` must be an absolute path, found `{found}`\nhelp: {help}"),
        ))
    }

    /// One of a few words, some of them with something in parentheses.
    pub(super) fn choice<T>(&self, choices: &[Choice<T>]) -> syn::Result<T> {
        self.equals()?;
        let ahead = self.input.fork();
        if let Ok(word) = ahead.parse::<Ident>()
            && let Some(choice) = choices.iter().find(|choice| word == choice.name())
        {
            self.input.advance_to(&ahead);
            return choice.read(&word, self.input);
        }
        let shown: Vec<_> = choices.iter().map(Choice::shown).collect();
        let expected =
            if let [only] = shown[..] { format!("`{only}`") } else { format!("one of `{}`", shown.join("`, `")) };
        let found = self.found();
        Err(syn::Error::new_spanned(&found, format_args!("expected `{}` to be {expected}, found `{found}`", self.key)))
    }

    fn equals(&self) -> syn::Result<()> {
        if self.input.parse::<Option<Token![=]>>()?.is_some() && !at_end(self.input) {
            return Ok(());
        }
        let message = format_args!("expected `{}` to have a value: `{}`", self.key, self.example);
        Err(syn::Error::new_spanned(self.key, message))
    }

    /// A `T` that is all there is up to the next comma, or up to a word before which a comma is missing; else nothing is
    /// consumed.
    fn whole<T: Parse>(&self) -> Option<T> {
        let ahead = self.input.fork();
        let value = ahead.parse().ok().filter(|_| at_end(&ahead) || ahead.peek(Ident::peek_any))?;
        self.input.advance_to(&ahead);
        Some(value)
    }

    fn wrong_kind(&self, expected: &str) -> syn::Error {
        let message = format_args!("expected `{}` to be {expected}: `{}`", self.key, self.example);
        syn::Error::new_spanned(self.found(), message)
    }

    /// The value as it stands, for a message about it.
    fn found(&self) -> TokenStream {
        let ahead = self.input.fork();
        let mut found = TokenStream::new();
        while !at_end(&ahead)
            && let Ok(token) = ahead.parse::<TokenTree>()
        {
            found.extend([token]);
        }
        found
    }
}

/// An error at the next token, or at the end.
pub(super) fn at_next(input: ParseStream<'_>, message: impl Display) -> syn::Error {
    syn::Error::new(input.span(), message)
}

/// Skips a value that nobody reads.
pub(super) fn skip(input: ParseStream<'_>) {
    let ahead = input.fork();
    if matches!(ahead.parse::<Option<Token![=]>>(), Ok(Some(_))) && ahead.parse::<Expr>().is_ok() {
        input.advance_to(&ahead);
    }
}

/// The expression itself, if a `macro_rules` macro has passed it on as `$e:expr`.
fn ungrouped(expr: Expr) -> Expr {
    match expr {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}

fn at_end(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,])
}
