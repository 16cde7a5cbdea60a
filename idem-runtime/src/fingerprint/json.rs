//! The canonical form of JSON: what serde_json has found to be JSON is read once more, into a tree that borrows from the
//! text, so that numbers are never converted and each byte is looked at as often whatever the depth.

mod reader;

use serde_json::value::RawValue;

use self::reader::Reader;
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
    let tree = Tree::read(bytes)?;
    input.tag(Tag::Json);
    tree.write(tree.root, input);
    Ok(())
}

/// Writes the values that `pointers` name, in their order. Also what is not selected must have one meaning only.
pub(super) fn selected(input: &mut Input, bytes: &[u8], pointers: &[&str]) -> Result<(), NotCanonical> {
    let tree = Tree::read(bytes)?;
    input.tag(Tag::Selected);
    input.count(pointers.len());
    for pointer in pointers {
        match tree.at(pointer) {
            None => input.tag(Tag::Absent),
            Some(selected) => {
                input.tag(Tag::Present);
                tree.write(selected, input);
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
    let tree = Tree::read(bytes)?;
    Ok(pointers.map(|pointer| match tree.at(pointer) {
        Some(Value::Text(text)) => Pointed::Text(text.of(&tree.resolved).to_owned()),
        Some(Value::Scalar(text)) => Pointed::Scalar(text.to_owned()),
        Some(Value::Object(_) | Value::Array(_)) | None => Pointed::Other,
    }))
}

/// A document. What its objects and arrays hold stands in two lists, that of each one together: a list for each would be an
/// allocation for each, and they would take longer than the reading.
struct Tree<'a> {
    members: Vec<Member<'a>>,
    items: Vec<Value<'a>>,
    /// The texts that had escapes, without them, one after the other.
    resolved: String,
    root: Value<'a>,
}

type Member<'a> = (Text<'a>, Value<'a>);

#[derive(Clone, Copy)]
enum Value<'a> {
    /// Of `members`: sorted by name, each name once.
    Object(Span),
    /// Of `items`.
    Array(Span),
    Text(Text<'a>),
    /// A number, `true`, `false` or `null`, as it was written.
    Scalar(&'a str),
}

#[derive(Clone, Copy)]
enum Text<'a> {
    /// It has no escapes.
    Verbatim(&'a str),
    /// Of `resolved`.
    Resolved(Span),
}

#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

impl<'a> Tree<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, NotCanonical> {
        let json: &RawValue = serde_json::from_slice(bytes)?; // it skips without recursion
        Reader::new(json.get()).document(MAX_DEPTH)
    }

    fn write(&self, value: Value<'a>, input: &mut Input) {
        match value {
            Value::Object(members) => {
                let members = members.of(&self.members);
                input.tag(Tag::Object);
                input.count(members.len());
                for (name, member) in members {
                    input.bytes(name.of(&self.resolved).as_bytes());
                    self.write(*member, input);
                }
            }
            Value::Array(items) => {
                let items = items.of(&self.items);
                input.tag(Tag::Array);
                input.count(items.len());
                items.iter().for_each(|item| self.write(*item, input));
            }
            Value::Text(text) => {
                input.tag(Tag::Text);
                input.bytes(text.of(&self.resolved).as_bytes());
            }
            Value::Scalar(text) => {
                input.tag(Tag::Scalar);
                input.bytes(text.as_bytes());
            }
        }
    }

    /// RFC 6901. A pointer that is none names nothing.
    fn at(&self, pointer: &str) -> Option<Value<'a>> {
        let mut tokens = pointer.split('/');
        if tokens.next() != Some("") {
            return None;
        }
        tokens.try_fold(self.root, |at, token| match at {
            Value::Object(members) => {
                let name = token.replace("~1", "/").replace("~0", "~");
                let mut members = members.of(&self.members).iter();
                members.find(|(member, _)| member.of(&self.resolved) == name).map(|(_, value)| *value)
            }
            Value::Array(items) => index(token).and_then(|index| items.of(&self.items).get(index).copied()),
            Value::Text(_) | Value::Scalar(_) => None,
        })
    }
}

impl Span {
    fn of<T>(self, list: &[T]) -> &[T] {
        &list[self.start..self.end]
    }
}

impl<'a> Text<'a> {
    fn of<'t>(self, resolved: &'t str) -> &'t str
    where
        'a: 't,
    {
        match self {
            Self::Verbatim(text) => text,
            Self::Resolved(span) => &resolved[span.start..span.end],
        }
    }
}

/// One spelling per item: no sign, no leading zero.
fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|b| b.is_ascii_digit()) && (token == "0" || !token.starts_with('0'));
    token.parse().ok().filter(|_| digits)
}
