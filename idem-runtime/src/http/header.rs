//! From header lines to a [`Key`].

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use sfv::{Parser, StringRef};

use crate::{key::Key, operation::KeyFormat};

/// The longest key that a header may carry, in bytes after unquoting.
const MAX: usize = 255;

/// What a client sends that formats a variable it never set. Taken as a key, it would be the same one for all its calls.
const UNSET: [&str; 5] = ["undefined", "null", "None", "NaN", "[object Object]"];

/// Why the header lines are no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// There is no such header.
    Missing,
    /// What is wrong, in words that do not contain the key.
    Invalid(&'static str),
}

/// The key in `lines`, the values of all header lines of that name.
///
/// Quoted and bare forms of one value are the same key: an SDK that starts to quote between two retries must not
/// execute twice.
pub(crate) fn parse_key<'a>(lines: impl IntoIterator<Item = &'a [u8]>, format: KeyFormat) -> Result<Key, HeaderFault> {
    let mut lines = lines.into_iter();
    let line = lines.next().ok_or(HeaderFault::Missing)?;
    // Before any parsing: joined as HTTP allows, the lines `"ab` and `cd"` would be one valid string.
    if lines.next().is_some() {
        return Err(HeaderFault::Invalid("the header is repeated"));
    }

    let line = trim(line);
    let text = if line.starts_with(b"\"") { quoted(line)? } else { bare(line)? };
    match text.len() {
        0 => return Err(HeaderFault::Invalid("the key is empty")),
        1..=MAX => {}
        _ => return Err(HeaderFault::Invalid("the key is longer than 255 characters")),
    }
    if UNSET.contains(&&*text) {
        return Err(HeaderFault::Invalid("the key is the text of a variable that was not set"));
    }
    let text = match format {
        KeyFormat::Any => text.into_owned(),
        KeyFormat::Uuid => uuid(&text)?,
    };
    Key::new(text).map_err(|fault| HeaderFault::Invalid(fault.0))
}

/// Without the optional white space of HTTP, which is less than that of ASCII: a line feed is a fault.
fn trim(mut line: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = line {
        line = rest;
    }
    line
}

/// A string of RFC 9651: what the IETF draft asks for. Its parameters say nothing to us.
fn quoted(line: &[u8]) -> Result<Cow<'_, str>, HeaderFault> {
    match Parser::new(line).parse_item::<Cow<'_, StringRef>>() {
        Ok(Cow::Borrowed(text)) => Ok(Cow::Borrowed(text.as_str())),
        Ok(Cow::Owned(text)) => Ok(Cow::Owned(text.into())),
        Err(_) => Err(HeaderFault::Invalid("the quoted key is not one complete structured-field string")),
    }
}

/// What most clients send. Not a token of RFC 9651, which cannot start with a digit; most UUIDs do.
fn bare(line: &[u8]) -> Result<Cow<'_, str>, HeaderFault> {
    let allowed = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'"' | b',' | b';' | b'\\');
    str::from_utf8(line).ok().filter(|text| text.as_bytes().iter().all(allowed)).map(Cow::Borrowed).ok_or(
        HeaderFault::Invalid(
            "an unquoted key consists of visible ASCII characters other than quote, comma, semicolon and backslash",
        ),
    )
}

/// Lower-cased here and nowhere else: in other keys the case may be all that differs.
fn uuid(text: &str) -> Result<String, HeaderFault> {
    let hyphenated = text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        });
    if hyphenated {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(HeaderFault::Invalid("the key is not a hyphenated UUID"))
    }
}
