//! The canonical form of JSON, hashed level by level: `RawValue` keeps the exact text of what is below a level, so that
//! numbers are never converted, and it skips without recursion, so that depth costs no stack before it is bounded.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Input, Tag};

/// Levels of objects and arrays that have a canonical form. Every level scans its text once more, so this bounds the
/// time as well as the stack.
const MAX_DEPTH: usize = 64;

/// Not JSON, a member name that occurs twice in one object, or nested too deeply: only the bytes can be compared.
#[derive(Debug)]
pub(super) struct NotCanonical;

impl From<serde_json::Error> for NotCanonical {
    fn from(_: serde_json::Error) -> Self {
        Self
    }
}

/// Writes the whole document.
pub(super) fn document(input: &mut Input, bytes: &[u8]) -> Result<(), NotCanonical> {
    input.tag(Tag::Json);
    value(input, serde_json::from_slice(bytes)?, MAX_DEPTH)
}

/// Writes the values that `pointers` name, in their order.
pub(super) fn selected(input: &mut Input, bytes: &[u8], pointers: &[&str]) -> Result<(), NotCanonical> {
    let root: &RawValue = serde_json::from_slice(bytes)?;
    value(&mut Input::default(), root, MAX_DEPTH)?; // also what is not selected must have one meaning only

    input.tag(Tag::Selected);
    input.count(pointers.len());
    for pointer in pointers {
        match resolve(root, pointer)? {
            None => input.tag(Tag::Absent),
            Some(selected) => {
                input.tag(Tag::Present);
                value(input, selected, MAX_DEPTH)?;
            }
        }
    }
    Ok(())
}

fn value(input: &mut Input, value: &RawValue, levels: usize) -> Result<(), NotCanonical> {
    match Level::read(value, levels)? {
        Level::Object(members) => {
            input.tag(Tag::Object);
            input.count(members.len());
            for (name, member) in members {
                input.bytes(name.0.as_bytes());
                self::value(input, member, levels - 1)?;
            }
        }
        Level::Array(items) => {
            input.tag(Tag::Array);
            input.count(items.len());
            for item in items {
                self::value(input, item, levels - 1)?;
            }
        }
        Level::Text(text) => {
            input.tag(Tag::Text);
            input.bytes(text.0.as_bytes());
        }
        Level::Scalar(text) => {
            input.tag(Tag::Scalar);
            input.bytes(text.as_bytes());
        }
    }
    Ok(())
}

/// What a pointer names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pointed {
    Text(String),
    /// A number, `true`, `false` or `null`, as it was written.
    Scalar(String),
    /// Nothing, an object or an array.
    Other,
}

/// What these pointers name, by the same rules.
pub(super) fn pointed<const N: usize>(bytes: &[u8], pointers: [&str; N]) -> Result<[Pointed; N], NotCanonical> {
    let root: &RawValue = serde_json::from_slice(bytes)?;
    let mut found = [const { Pointed::Other }; N];
    for (found, pointer) in found.iter_mut().zip(pointers) {
        *found = match resolve(root, pointer)?.map(|value| Level::read(value, MAX_DEPTH)).transpose()? {
            Some(Level::Text(text)) => Pointed::Text(text.0.into_owned()),
            Some(Level::Scalar(text)) => Pointed::Scalar(text.to_owned()),
            Some(Level::Object(_) | Level::Array(_)) | None => Pointed::Other,
        };
    }
    Ok(found)
}

/// RFC 6901. A pointer that is none names nothing.
fn resolve<'a>(root: &'a RawValue, pointer: &str) -> Result<Option<&'a RawValue>, NotCanonical> {
    let mut tokens = pointer.split('/');
    if tokens.next() != Some("") {
        return Ok(None);
    }
    let mut at = root;
    for token in tokens {
        let found = match Level::read(at, MAX_DEPTH)? {
            Level::Object(members) => {
                let name = token.replace("~1", "/").replace("~0", "~");
                members.into_iter().find(|(member, _)| member.0 == name).map(|(_, value)| value)
            }
            Level::Array(items) => index(token).and_then(|index| items.get(index).copied()),
            Level::Text(_) | Level::Scalar(_) => None,
        };
        match found {
            None => return Ok(None),
            Some(value) => at = value,
        }
    }
    Ok(Some(at))
}

/// One spelling per item: no sign, no leading zero.
fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|b| b.is_ascii_digit()) && (token == "0" || !token.starts_with('0'));
    token.parse().ok().filter(|_| digits)
}

/// A value, and what is directly below it.
enum Level<'a> {
    /// Sorted by name, each name once.
    Object(Vec<(Text<'a>, &'a RawValue)>),
    Array(Vec<&'a RawValue>),
    Text(Text<'a>),
    /// A number, `true`, `false` or `null`, as it was written.
    Scalar(&'a str),
}

impl<'a> Level<'a> {
    fn read(value: &'a RawValue, levels: usize) -> Result<Self, NotCanonical> {
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'{' | b'[') if levels == 0 => Err(NotCanonical),
            Some(b'{') => {
                let Members(mut members) = serde_json::from_str(text)?;
                members.sort_unstable_by(|(a, _), (b, _)| a.0.cmp(&b.0));
                let repeated = members.windows(2).any(|pair| pair[0].0.0 == pair[1].0.0);
                if repeated { Err(NotCanonical) } else { Ok(Self::Object(members)) }
            }
            Some(b'[') => Ok(Self::Array(serde_json::from_str(text)?)),
            Some(b'"') => Ok(Self::Text(serde_json::from_str(text)?)),
            _ => Ok(Self::Scalar(text)),
        }
    }
}

/// A string with its escapes resolved.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// All members in the order received; a map type would drop the repeated ones.
struct Members<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
