//! Arguments of statements, in both protocols.

use std::{borrow::Cow, fmt::Write as _};

use sqlx::{Postgres, postgres::PgArguments, query::Query};
use uuid::Uuid;

use super::sql::Statement;
use crate::key::hex;

/// One argument. Lists are parallel: entry n of each belongs to item n of the slice. No `Debug`: it holds answers.
pub(super) enum Arg<'a> {
    Flag(bool),
    Short(i16),
    Long(i64),
    Uuid(Uuid),
    Text(Cow<'a, str>),
    Int(Option<i32>),
    Bytes(Option<&'a [u8]>),
    Shorts(Vec<i16>),
    Ints(Vec<Option<i32>>),
    Longs(Vec<i64>),
    Uuids(Vec<Uuid>),
    Texts(Vec<Cow<'a, str>>),
    ByteStrings(Vec<Option<&'a [u8]>>),
}

/// A text that Postgres accepts, which has no character 0 in its texts.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// A prepared statement with its arguments.
pub(super) fn bound<'q>(statement: &Statement, args: &'q [Arg<'_>]) -> Query<'q, Postgres, PgArguments> {
    args.iter().fold(sqlx::query(statement.sql()), |query, arg| match arg {
        Arg::Flag(value) => query.bind(value),
        Arg::Short(value) => query.bind(value),
        Arg::Long(value) => query.bind(value),
        Arg::Uuid(value) => query.bind(value),
        Arg::Text(value) => query.bind(&**value),
        Arg::Int(value) => query.bind(value),
        Arg::Bytes(value) => query.bind(*value),
        Arg::Shorts(values) => query.bind(values),
        Arg::Ints(values) => query.bind(values),
        Arg::Longs(values) => query.bind(values),
        Arg::Uuids(values) => query.bind(values),
        Arg::Texts(values) => query.bind(values.iter().map(|value| &**value).collect::<Vec<&str>>()),
        Arg::ByteStrings(values) => query.bind(values),
    })
}

/// The statement as one text. Its literals are numbers, ids and hexadecimal digits only: there is nothing that could end
/// a literal, whatever the server's settings for quotes.
pub(super) fn rendered(statement: &Statement, args: &[Arg<'_>]) -> String {
    let mut sql = String::with_capacity(statement.text().len() * 2);
    let mut pieces = statement.text().split('$');
    sql.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let digits = piece.find(|c: char| !c.is_ascii_digit()).unwrap_or(piece.len());
        let arg = piece[..digits].parse::<usize>().ok().and_then(|n| args.get(n.checked_sub(1)?));
        if let Some(arg) = arg {
            literal(&mut sql, arg);
        }
        sql.push_str(&piece[digits..]);
    }
    sql
}

fn literal(sql: &mut String, arg: &Arg<'_>) {
    match arg {
        Arg::Flag(value) => number(sql, value),
        Arg::Short(value) => number(sql, value),
        Arg::Long(value) => number(sql, value),
        Arg::Uuid(value) => id(sql, value),
        Arg::Text(value) => words(sql, value),
        Arg::Int(value) => optional(sql, value.as_ref(), number),
        Arg::Bytes(value) => optional(sql, value.as_ref(), bytes),
        Arg::Shorts(values) => list(sql, values, number),
        Arg::Ints(values) => list(sql, values, |sql, value| optional(sql, value.as_ref(), number)),
        Arg::Longs(values) => list(sql, values, number),
        Arg::Uuids(values) => list(sql, values, id),
        Arg::Texts(values) => list(sql, values, |sql, value| words(sql, value)),
        Arg::ByteStrings(values) => list(sql, values, |sql, value| optional(sql, value.as_ref(), bytes)),
    }
}

fn list<T>(sql: &mut String, values: &[T], mut write: impl FnMut(&mut String, &T)) {
    sql.push_str("array[");
    for (n, value) in values.iter().enumerate() {
        if n > 0 {
            sql.push(',');
        }
        write(sql, value);
    }
    sql.push(']');
}

fn optional<T>(sql: &mut String, value: Option<&T>, write: impl FnOnce(&mut String, &T)) {
    match value {
        Some(value) => write(sql, value),
        None => sql.push_str("null"),
    }
}

/// In parentheses, because `-1::int8` is the negative of a cast.
fn number(sql: &mut String, value: &impl std::fmt::Display) {
    let _ = write!(sql, "({value})"); // a `String` takes all
}

fn id(sql: &mut String, value: &Uuid) {
    let _ = write!(sql, "'{value}'");
}

fn bytes(sql: &mut String, value: &&[u8]) {
    let _ = write!(sql, "decode('{}','hex')", hex(value));
}

fn words(sql: &mut String, value: &str) {
    let _ = write!(sql, "convert_from(decode('{}','hex'),'UTF8')", hex(value.as_bytes()));
}
