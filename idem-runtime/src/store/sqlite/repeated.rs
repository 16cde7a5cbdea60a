//! One statement for many rows.

use std::sync::OnceLock;

use sqlx::{Sqlite, query::Query, sqlite::SqliteArguments};

/// How many rows it is prepared for. Few lengths, because a connection keeps each: what a list does not fill is null.
const LENGTHS: [usize; 6] = [1, 4, 8, 16, 32, 64];

/// As many rows as it carries.
pub(super) const MOST: usize = LENGTHS[LENGTHS.len() - 1];

/// A statement whose lists of rows, written as `(?, ?), ..`, are as long as they need be. It has to pass over rows of nulls.
///
/// The driver hands each statement to a thread and waits for it, which takes longer than most of ours; so a slice must not
/// be a statement for each of its rows.
pub(super) struct Repeated {
    template: &'static str,
    texts: OnceLock<[String; LENGTHS.len()]>,
}

impl Repeated {
    pub(super) const fn new(template: &'static str) -> Self {
        Self { template, texts: OnceLock::new() }
    }

    /// The statement for a list of so many rows, up to [`MOST`], and how many it has to be given.
    pub(super) fn of(&'static self, rows: usize) -> (Query<'static, Sqlite, SqliteArguments>, usize) {
        let (text, length) = self.text(rows);
        (sqlx::query(text), length)
    }

    pub(super) fn text(&'static self, rows: usize) -> (&'static str, usize) {
        let texts = self.texts.get_or_init(|| LENGTHS.map(|length| repeated(self.template, length)));
        let place = LENGTHS.iter().position(|length| *length >= rows).unwrap_or(LENGTHS.len() - 1);
        (&texts[place], LENGTHS[place])
    }
}

/// So many more parameters, of rows that are not there.
pub(super) fn nulls(
    query: Query<'static, Sqlite, SqliteArguments>,
    parameters: usize,
) -> Query<'static, Sqlite, SqliteArguments> {
    (0..parameters).fold(query, |query, _| query.bind(None::<i64>))
}

fn repeated(template: &str, times: usize) -> String {
    let mut parts = template.split(", ..");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let row = text[text.rfind('(').unwrap_or_default()..].to_owned();
        (1..times).for_each(|_| text.extend([", ", &row]));
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_as_long_as_it_need_be() {
        static ROWS: Repeated = Repeated::new("a (values (?, ?), ..) b in (values (?), ..);");
        assert_eq!(ROWS.text(1), ("a (values (?, ?)) b in (values (?));", 1));
        let four = "a (values (?, ?), (?, ?), (?, ?), (?, ?)) b in (values (?), (?), (?), (?));";
        assert_eq!(ROWS.text(3), (four, 4));
        for rows in 1..=MOST {
            let (text, length) = ROWS.text(rows);
            assert!(length >= rows && text.matches('?').count() == 3 * length, "{rows}");
        }
    }
}
