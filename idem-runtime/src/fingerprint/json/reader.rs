//! From a text that is JSON to its tree.

use super::{Member, NotCanonical, Span, Text, Tree, Value};

/// Goes through a text that is known to be JSON. Were it not, it would come to an error or an end, and not to a panic.
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    members: List<Member<'a>>,
    items: List<Value<'a>>,
    resolved: String,
}

/// What an object or an array holds is together in the end: until then, what is inside of it comes in between.
struct List<T> {
    complete: Vec<T>,
    open: Vec<T>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, members: List::new(), items: List::new(), resolved: String::new() }
    }

    pub(super) fn document(mut self, levels: usize) -> Result<Tree<'a>, NotCanonical> {
        let root = self.value(levels)?;
        let (members, items) = (self.members.complete, self.items.complete);
        Ok(Tree { members, items, resolved: self.resolved, root })
    }

    #[inline(always)] // a value is not worth a call and a way over the stack
    fn value(&mut self, levels: usize) -> Result<Value<'a>, NotCanonical> {
        match self.next()? {
            b'{' | b'[' if levels == 0 => Err(NotCanonical),
            b'{' => self.object(levels - 1).map(Value::Object),
            b'[' => self.array(levels - 1).map(Value::Array),
            b'"' => self.string().map(Value::Text),
            _ => {
                let rest = self.text.as_bytes().get(self.at..).ok_or(NotCanonical)?;
                let length =
                    rest.iter().take_while(|b| !matches!(b, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r'));
                self.slice(length.count()).map(Value::Scalar)
            }
        }
    }

    fn object(&mut self, levels: usize) -> Result<Span, NotCanonical> {
        let start = self.members.open.len();
        while self.goes_on(b'}')? {
            let name = self.string()?;
            self.next()?;
            self.at += 1; // the colon
            let value = self.value(levels)?;
            self.members.open.push((name, value));
        }
        let (members, resolved) = (&mut self.members.open[start..], &self.resolved);
        members.sort_unstable_by(|(a, _), (b, _)| a.of(resolved).cmp(b.of(resolved)));
        let repeated = members.windows(2).any(|pair| pair[0].0.of(resolved) == pair[1].0.of(resolved));
        if repeated { Err(NotCanonical) } else { Ok(self.members.close(start)) }
    }

    fn array(&mut self, levels: usize) -> Result<Span, NotCanonical> {
        let start = self.items.open.len();
        while self.goes_on(b']')? {
            let item = self.value(levels)?;
            self.items.open.push(item);
        }
        Ok(self.items.close(start))
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

    #[inline(always)] // as `value`
    fn string(&mut self) -> Result<Text<'a>, NotCanonical> {
        let rest = self.text.as_bytes().get(self.at + 1..).ok_or(NotCanonical)?;
        let (mut length, mut escapes) = (0, false);
        loop {
            match rest.get(length).ok_or(NotCanonical)? {
                b'"' => break,
                b'\\' => (length, escapes) = (length + 2, true),
                _ => length += 1,
            }
        }
        let text = self.slice(length + 2)?.get(1..=length).ok_or(NotCanonical)?;
        if escapes { self.resolve(text).map(Text::Resolved) } else { Ok(Text::Verbatim(text)) }
    }

    fn resolve(&mut self, mut text: &str) -> Result<Span, NotCanonical> {
        let start = self.resolved.len();
        while let Some((plain, escape)) = text.split_once('\\') {
            self.resolved.push_str(plain);
            let (kind, rest) = escape.split_at_checked(1).ok_or(NotCanonical)?;
            text = rest;
            match kind {
                "b" => self.resolved.push('\x08'),
                "f" => self.resolved.push('\x0C'),
                "n" => self.resolved.push('\n'),
                "r" => self.resolved.push('\r'),
                "t" => self.resolved.push('\t'),
                "u" => self.resolved.push(code_point(&mut text)?),
                itself => self.resolved.push_str(itself),
            }
        }
        self.resolved.push_str(text);
        Ok(Span { start, end: self.resolved.len() })
    }

    /// The next byte that is no white space.
    fn next(&mut self) -> Result<u8, NotCanonical> {
        loop {
            match self.text.as_bytes().get(self.at).ok_or(NotCanonical)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                other => return Ok(*other),
            }
        }
    }

    fn slice(&mut self, length: usize) -> Result<&'a str, NotCanonical> {
        let slice = self.text.get(self.at..self.at + length).ok_or(NotCanonical)?;
        self.at += length;
        Ok(slice)
    }
}

impl<T: Copy> List<T> {
    fn new() -> Self {
        Self { complete: Vec::new(), open: Vec::new() }
    }

    /// What was opened since `start` is complete.
    fn close(&mut self, start: usize) -> Span {
        let first = self.complete.len();
        self.complete.extend_from_slice(&self.open[start..]);
        self.open.truncate(start);
        Span { start: first, end: self.complete.len() }
    }
}

/// What follows `\u`: one unit of UTF-16, or the two of a pair. serde_json's skipping lets halves of pairs pass.
fn code_point(text: &mut &str) -> Result<char, NotCanonical> {
    let first = unit(text)?;
    if let Some(whole) = char::from_u32(first.into()) {
        return Ok(whole);
    }
    *text = text.strip_prefix("\\u").ok_or(NotCanonical)?;
    let pair = char::decode_utf16([first, unit(text)?]).next();
    pair.and_then(Result::ok).ok_or(NotCanonical)
}

fn unit(text: &mut &str) -> Result<u16, NotCanonical> {
    let (digits, rest) = text.split_at_checked(4).ok_or(NotCanonical)?;
    *text = rest;
    u16::from_str_radix(digits, 16).map_err(|_| NotCanonical)
}
