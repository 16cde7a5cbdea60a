//! Where an event stands among those of its object: read from the bytes that were received, as a fingerprint is.

#[cfg(test)]
mod tests;

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::payload::Received;
use crate::{
    Runtime,
    error::{Error, ErrorKind},
    fingerprint::{Pointed, pointed},
    key::{OrderId, Scope, Sequence},
    operation::Operation,
    store::Order,
};

/// What the operation's pointers name; `None` if it has none.
///
/// # Errors
/// [`ErrorKind::OrderUnreadable`], with what is wrong, and nothing of the body.
pub(super) fn read(
    runtime: &Runtime,
    operation: &Operation,
    scope: &Scope,
    content: &Received,
) -> Result<Option<Order>, Error> {
    let Some(rule) = operation.order else { return Ok(None) };
    let unreadable = |why| Error::new(ErrorKind::OrderUnreadable).with(|about| about.detail = Some(why));
    let Received::Bytes(body) = content else { return Err(unreadable("the body was not read")) };
    let [object, sequence] = pointed(body, [rule.object, rule.sequence])
        .ok_or_else(|| unreadable("the body is not JSON, or names a member twice"))?;
    let object =
        self::object(object).ok_or_else(|| unreadable("the object's id is missing, or neither text nor an integer"))?;
    let sequence = self::sequence(sequence)
        .ok_or_else(|| unreadable("the sequence is missing, or neither a 64-bit integer nor an RFC 3339 time"))?;
    let id = OrderId::new(&runtime.config().namespace, scope, operation.op, &object, sequence);
    Ok(Some(Order { id, sequence: sequence.value(), keep: runtime.rules(operation).guard }))
}

/// A number and its digits as text name the same object: senders change from one to the other.
fn object(value: Pointed) -> Option<String> {
    match value {
        Pointed::Text(text) if !text.is_empty() => Some(text),
        Pointed::Scalar(text) if is_integer(&text) => Some(text),
        Pointed::Text(_) | Pointed::Scalar(_) | Pointed::Other => None,
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn sequence(value: Pointed) -> Option<Sequence> {
    match value {
        Pointed::Scalar(text) => text.parse().ok().map(Sequence::Number),
        Pointed::Text(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            text.parse().ok().map(Sequence::Number)
        }
        Pointed::Text(text) => {
            let time = OffsetDateTime::parse(&text, &Rfc3339).ok()?;
            i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000)).ok().map(Sequence::Time)
        }
        Pointed::Other => None,
    }
}
