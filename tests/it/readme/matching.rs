//! Compares what is printed with what is shown.

use std::collections::HashMap;

/// What ids a README shows, and which they are in this run.
#[derive(Debug, Default, Clone)]
pub(super) struct Output {
    ids: HashMap<String, String>,
}

/// A piece of a shown line.
#[derive(Debug, Clone, Copy)]
enum Piece<'a> {
    Text(&'a str),
    Anything,
    Id(&'a str),
}

impl Output {
    /// White space at the ends of lines and of the whole does not count.
    pub(super) fn matches(&mut self, shown: &str, printed: &str) -> bool {
        let lines =
            |text: &'_ str| -> Vec<String> { text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect() };
        match self.lines(&lines(shown), &lines(printed)) {
            Some(after) => {
                *self = after;
                true
            }
            None => false,
        }
    }

    fn lines(&self, shown: &[String], printed: &[String]) -> Option<Self> {
        let Some((first, rest)) = shown.split_first() else { return printed.is_empty().then(|| self.clone()) };
        if first == "…" {
            return (0..=printed.len()).find_map(|skipped| self.lines(rest, &printed[skipped..]));
        }
        let (line, further) = printed.split_first()?;
        self.line(first, line)?.lines(rest, further)
    }

    fn line(&self, shown: &str, printed: &str) -> Option<Self> {
        let is_date = |line: &str| line.get(..6).is_some_and(|name| name.eq_ignore_ascii_case("date: "));
        if is_date(shown) {
            return is_date(printed).then(|| self.clone());
        }
        self.pieces(&pieces(shown), printed)
    }

    fn pieces(&self, shown: &[Piece<'_>], printed: &str) -> Option<Self> {
        let Some((first, rest)) = shown.split_first() else { return printed.is_empty().then(|| self.clone()) };
        match *first {
            Piece::Text(text) => self.pieces(rest, printed.strip_prefix(text)?),
            Piece::Anything => {
                let mut ends = printed.char_indices().map(|(at, char)| at + char.len_utf8());
                ends.find_map(|end| self.pieces(rest, &printed[end..]))
            }
            Piece::Id(id) => {
                let length = id_length(printed)?;
                if prefix(id) != prefix(printed) {
                    return None;
                }
                let (found, further) = printed.split_at(length);
                let mut after = self.clone();
                let known = after.ids.entry(id.to_owned()).or_insert_with(|| found.to_owned());
                if known == found { after.pieces(rest, further) } else { None }
            }
        }
    }
}

fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(char) = line[at..].chars().next() {
        let rest = &line[at..];
        let after_a_word = line[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
        let special = match char {
            '…' => Some((Piece::Anything, char.len_utf8())),
            '<' => placeholder_length(rest).map(|length| (Piece::Anything, length)),
            _ if after_a_word => None,
            _ => id_length(rest).map(|length| (Piece::Id(&rest[..length]), length)),
        };
        match special {
            Some((piece, length)) => {
                pieces.extend((start < at).then(|| Piece::Text(&line[start..at])));
                pieces.push(piece);
                at += length;
                start = at;
            }
            None => at += char.len_utf8(),
        }
    }
    pieces.extend((start < at).then(|| Piece::Text(&line[start..at])));
    pieces
}

/// Of `<words>` at the start of `text`. A URL in angle brackets is none.
fn placeholder_length(text: &str) -> Option<usize> {
    let inner = &text[1..text.find('>')?];
    let is_word = |char: char| char.is_ascii_alphanumeric() || "-_ ".contains(char);
    (!inner.is_empty() && inner.chars().all(is_word)).then_some(inner.len() + 2)
}

/// Of an id at the start of `text`: 32 hex digits, after a prefix or not.
fn id_length(text: &str) -> Option<usize> {
    let prefix = prefix(text).len();
    let count = text[prefix..].bytes().take_while(u8::is_ascii_hexdigit).count();
    (count == 32).then_some(prefix + 32)
}

fn prefix(id: &str) -> &'static str {
    ["ch_", "po_", "or_", "do_"].into_iter().find(|prefix| id.starts_with(prefix)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0123456789abcdef0123456789abcdef";
    const B: &str = "fedcba9876543210fedcba9876543210";

    fn matches(shown: &str, printed: &str) -> bool {
        Output::default().matches(shown, printed)
    }

    #[test]
    fn text_must_be_equal() {
        assert!(matches("one\ntwo\n", "one  \r\ntwo\n\n"));
        assert!(!matches("one\ntwo", "one"));
        assert!(!matches("one", "one\ntwo"));
        assert!(!matches("", "one"));
    }

    #[test]
    fn placeholders_stand_for_some_text() {
        assert!(matches("{\"id\":\"<id>\",…}", "{\"id\":\"ch_1\",\"amount\":1}"));
        assert!(!matches("id: <id>", "id: "), "not for none");
        assert!(!matches("<https://a>", "<https://b>"));
        assert!(matches("one\n…\nfour", "one\ntwo\nthree\nfour"));
        assert!(matches("one\n…\nfour", "one\nfour"));
        assert!(!matches("one\n…\nfour", "one\ntwo"));
        assert!(matches("Date: Mon", "date: Tue, 01 Jan 2030 00:00:00 GMT"));
        assert!(!matches("date: Mon", "age: 1"));
    }

    #[test]
    fn an_id_is_the_same_everywhere() {
        let mut output = Output::default();
        assert!(output.matches(&format!("\"ch_{A}\""), &format!("\"ch_{B}\"")));
        assert!(output.matches(&format!("/charges/ch_{A}"), &format!("/charges/ch_{B}")));
        assert!(!output.matches(&format!("ch_{A}"), &format!("ch_{A}")), "another id than at first");
        assert!(!matches(&format!("ch_{A}"), "ch_1"));
        assert!(!matches(&format!("ch_{A}"), &format!("po_{B}")), "a payout is no charge");
    }
}
