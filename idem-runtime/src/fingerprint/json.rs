//! The canonical form of JSON: what serde_json has found to be JSON is read once more, into a tree that borrows from the
//! text, so that numbers are never converted and each byte is looked at as often whatever the depth.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{Input, Tag};

/// Levels of objects and arrays that have a canonical form: it bounds the stack.
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
    let root = Value::read(bytes)?;
    input.tag(Tag::Json);
    root.write(input);
    Ok(())
}

/// Writes the values that `pointers` name, in their order. Also what is not selected must have one meaning only.
pub(super) fn selected(input: &mut Input, bytes: &[u8], pointers: &[&str]) -> Result<(), NotCanonical> {
    let root = Value::read(bytes)?;
    input.tag(Tag::Selected);
    input.count(pointers.len());
    for pointer in pointers {
        match root.at(pointer) {
            None => input.tag(Tag::Absent),
            Some(selected) => {
                input.tag(Tag::Present);
                selected.write(input);
            }
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
    let root = Value::read(bytes)?;
    Ok(pointers.map(|pointer| match root.at(pointer) {
        Some(Value::Text(text)) => Pointed::Text(text.clone().into_owned()),
        Some(Value::Scalar(text)) => Pointed::Scalar((*text).to_owned()),
        Some(Value::Object(_) | Value::Array(_)) | None => Pointed::Other,
    }))
}

enum Value<'a> {
    /// Sorted by name, each name once.
    Object(Vec<(Cow<'a, str>, Self)>),
    Array(Vec<Self>),
    /// With its escapes resolved.
    Text(Cow<'a, str>),
    /// A number, `true`, `false` or `null`, as it was written.
    Scalar(&'a str),
}

impl<'a> Value<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, NotCanonical> {
        let json: &RawValue = serde_json::from_slice(bytes)?; // it skips without recursion
        Reader { text: json.get(), at: 0 }.value(MAX_DEPTH)
    }

    fn write(&self, input: &mut Input) {
        match self {
            Self::Object(members) => {
                input.tag(Tag::Object);
                input.count(members.len());
                for (name, member) in members {
                    input.bytes(name.as_bytes());
                    member.write(input);
                }
            }
            Self::Array(items) => {
                input.tag(Tag::Array);
                input.count(items.len());
                items.iter().for_each(|item| item.write(input));
            }
            Self::Text(text) => {
                input.tag(Tag::Text);
                input.bytes(text.as_bytes());
            }
            Self::Scalar(text) => {
                input.tag(Tag::Scalar);
                input.bytes(text.as_bytes());
            }
        }
    }

    /// RFC 6901. A pointer that is none names nothing.
    fn at(&self, pointer: &str) -> Option<&Self> {
        let mut tokens = pointer.split('/');
        if tokens.next() != Some("") {
            return None;
        }
        tokens.try_fold(self, |at, token| match at {
            Self::Object(members) => {
                let name = token.replace("~1", "/").replace("~0", "~");
                members.iter().find(|(member, _)| *member == name).map(|(_, value)| value)
            }
            Self::Array(items) => index(token).and_then(|index| items.get(index)),
            Self::Text(_) | Self::Scalar(_) => None,
        })
    }
}

/// One spelling per item: no sign, no leading zero.
fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|b| b.is_ascii_digit()) && (token == "0" || !token.starts_with('0'));
    token.parse().ok().filter(|_| digits)
}

/// Goes through a text that is known to be JSON. Were it not, it would come to an error or an end, and not to a panic.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, levels: usize) -> Result<Value<'a>, NotCanonical> {
        match self.next()? {
            b'{' | b'[' if levels == 0 => Err(NotCanonical),
            b'{' => self.object(levels - 1),
            b'[' => self.array(levels - 1),
            b'"' => Ok(Value::Text(self.string()?)),
            _ => {
                let rest = self.text.get(self.at..).ok_or(NotCanonical)?;
                let length =
                    rest.bytes().take_while(|b| !matches!(b, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r'));
                self.slice(length.count()).map(Value::Scalar)
            }
        }
    }

    fn object(&mut self, levels: usize) -> Result<Value<'a>, NotCanonical> {
        let mut members = Vec::new();
        while self.goes_on(b'}')? {
            let name = self.string()?;
            self.next()?;
            self.at += 1; // the colon
            members.push((name, self.value(levels)?));
        }
        members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let repeated = members.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if repeated { Err(NotCanonical) } else { Ok(Value::Object(members)) }
    }

    fn array(&mut self, levels: usize) -> Result<Value<'a>, NotCanonical> {
        let mut items = Vec::new();
        while self.goes_on(b']')? {
            items.push(self.value(levels)?);
        }
        Ok(Value::Array(items))
    }

    /// Past the bracket or comma that it stands on, and past the `end` if that comes next.
    fn goes_on(&mut self, end: u8) -> Result<bool, NotCanonical> {
        if self.next()? != end {
            self.at += 1;
        }
        let ends = self.next()? == end;
        self.at += usize::from(ends);
        Ok(!ends)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, NotCanonical> {
        let rest = self.text.as_bytes().get(self.at + 1..).ok_or(NotCanonical)?;
        let (mut length, mut escapes) = (0, false);
        loop {
            match rest.get(length).ok_or(NotCanonical)? {
                b'"' => break,
                b'\\' => (length, escapes) = (length + 2, true),
                _ => length += 1,
            }
        }
        let quoted = self.slice(length + 2)?;
        if escapes {
            return Ok(Cow::Owned(serde_json::from_str(quoted)?));
        }
        quoted.get(1..=length).map(Cow::Borrowed).ok_or(NotCanonical)
    }

    /// The next byte that is no white space.
    fn next(&mut self) -> Result<u8, NotCanonical> {
        let rest = self.text.as_bytes().get(self.at..).ok_or(NotCanonical)?;
        let space = rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += space;
        rest.get(space).copied().ok_or(NotCanonical)
    }

    fn slice(&mut self, length: usize) -> Result<&'a str, NotCanonical> {
        let slice = self.text.get(self.at..self.at + length).ok_or(NotCanonical)?;
        self.at += length;
        Ok(slice)
    }
}
