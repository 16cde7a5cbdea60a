//! The grammar of what stands between quotes.

use std::collections::HashSet;

use syn::{LitStr, Token, parse::ParseStream};

use super::Seconds;
use crate::duration;

const OP_MAX: usize = 64;

/// The name of an operation: it is part of stored identities and of metrics, so it stays short and plain.
pub(super) fn op(lit: LitStr) -> syn::Result<LitStr> {
    let text = lit.value();
    let problem = match text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-')) {
        Some(c) => format!("found `{c}`"),
        None if text.is_empty() => "it is empty".to_owned(),
        None if text.len() > OP_MAX => format!("it has {} characters", text.len()),
        None => return Ok(lit),
    };
    let message = format_args!(
        "invalid `op`: {problem}, expected 1 to {OP_MAX} of `a` to `z`, `0` to `9`, `.`, `_` and `-`, as in `op = \"charge\"`"
    );
    Err(syn::Error::new_spanned(&lit, message))
}

/// A header name: a `token` of RFC 9110.
pub(super) fn header(lit: LitStr) -> syn::Result<LitStr> {
    let text = lit.value();
    let problem = match text.chars().find(|c| !c.is_ascii_alphanumeric() && !"!#$%&'*+-.^_`|~".contains(*c)) {
        Some(c) => format!("found `{c}`"),
        None if text.is_empty() => "it is empty".to_owned(),
        None => return Ok(lit),
    };
    let message = format_args!(
        "invalid `header`: {problem}, expected a header name of letters, digits and `-`, as in `header = \"Idempotency-Key\"`"
    );
    Err(syn::Error::new_spanned(&lit, message))
}

/// The duration of the argument or word called `name`.
pub(super) fn seconds(name: &str, example: &str, lit: LitStr) -> syn::Result<Seconds> {
    match duration::parse(&lit.value()) {
        Ok(seconds) => Ok(Seconds { lit, seconds }),
        Err(problem) => {
            Err(syn::Error::new_spanned(&lit, format_args!("invalid `{name}`: {problem}, as in `{example}`")))
        }
    }
}

/// The duration within the parentheses of `word`.
pub(super) fn duration(word: &str, inner: ParseStream<'_>) -> syn::Result<Seconds> {
    let example = format!("{word}(\"10s\")");
    let seconds = seconds(word, &example, string(word, &example, inner)?)?;
    inner.parse::<Option<Token![,]>>()?;
    if inner.is_empty() { Ok(seconds) } else { Err(inner.error(format_args!("`{word}` takes one duration"))) }
}

/// JSON pointers (RFC 6901), at least one, each once.
pub(super) fn pointers(inner: ParseStream<'_>) -> syn::Result<Vec<LitStr>> {
    let next = |inner: ParseStream<'_>| string("fields", "fields(\"/amount\", \"/currency\")", inner);
    let pointers: Vec<LitStr> = inner.parse_terminated(next, Token![,])?.into_iter().collect();
    check_pointers(&pointers).map(|()| pointers)
}

/// All that is wrong with them.
pub(super) fn check_pointers(pointers: &[LitStr]) -> syn::Result<()> {
    let mut seen = HashSet::new();
    let problems = pointers.iter().filter_map(|lit| {
        let text = lit.value();
        let problem = if !text.starts_with('/') {
            "invalid JSON pointer: expected it to start with `/`, as in `\"/amount\"`".to_owned()
        } else if text.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
            "invalid JSON pointer: `~` stands alone, expected `~0` for a `~` or `~1` for a `/` within a name".to_owned()
        } else if !seen.insert(text.clone()) {
            format!("duplicate JSON pointer `{text}`")
        } else {
            return None;
        };
        Some(syn::Error::new_spanned(lit, problem))
    });
    let all = problems.reduce(|mut all, problem| {
        all.combine(problem);
        all
    });
    all.map_or(Ok(()), Err)
}

fn string(word: &str, example: &str, inner: ParseStream<'_>) -> syn::Result<LitStr> {
    let span = inner.span();
    inner.parse().map_err(|_| syn::Error::new(span, format_args!("expected `{word}` to hold strings: `{example}`")))
}
