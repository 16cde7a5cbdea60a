//! Which order an event belongs to, and where it stands in it.

use std::fmt;

use super::{Scope, hex, identity};

/// The identity of an order, in which the events of one object come one after the other: the first 16 bytes of SHA-256 over
/// the length-prefixed namespace, scope, operation, object and the form of its sequences. Says nothing about the object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderId([u8; 16]);

/// Where an event says that it stands. What is of two forms cannot be compared, and is in two orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sequence {
    Number(i64),
    /// In microseconds since 1970.
    Time(i64),
}

impl Sequence {
    pub(crate) fn value(self) -> i64 {
        match self {
            Self::Number(value) | Self::Time(value) => value,
        }
    }

    /// Part of stored identities.
    fn form(self) -> &'static [u8] {
        match self {
            Self::Number(_) => b"number",
            Self::Time(_) => b"time",
        }
    }
}

/// Before all else, where a `RecordId` has the length of a namespace: none is as long as these bytes say, so no order has the
/// digest of a record.
const ORDER: &[u8; 8] = b"an order";

impl OrderId {
    /// The order of the events about `object` that `op` applies in `scope`.
    pub(crate) fn new(namespace: &str, scope: &Scope, op: &str, object: &str, sequence: Sequence) -> Self {
        let parts = [namespace.as_bytes(), &scope.digest_input, op.as_bytes(), object.as_bytes(), sequence.form()];
        Self(identity(ORDER, &parts))
    }

    /// The 16 bytes, as stores keep them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl From<[u8; 16]> for OrderId {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

/// Its first eight hex digits.
impl fmt::Debug for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderId(#{})", hex(&self.0[..4]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::key::{Global, Key, RecordId};

    fn id(namespace: &str, scope: &Scope, op: &str, object: &str, sequence: Sequence) -> [u8; 16] {
        OrderId::new(namespace, scope, op, object, sequence).0
    }

    /// Stored by programs of today for those of tomorrow.
    #[test]
    fn clause_42_the_identity_of_an_order_is_golden() {
        let id = OrderId::new("shop", &Scope::of("acme"), "stripe", "sub_1", Sequence::Number(7));
        assert_eq!(hex(id.as_bytes()), "d640afdd39a68107c9baa008bcdf3051");
    }

    #[test]
    fn clause_42_all_that_tells_two_orders_apart_is_in_the_identity() {
        let (acme, of_two) = (Scope::of("acme"), Scope::of(&("ac", "me")));
        let (number, time) = (Sequence::Number(1), Sequence::Time(1));
        let all = [
            id("shop", &acme, "op", "sub_1", number),
            id("shop", &acme, "op", "sub_1", time),
            id("shop", &acme, "op", "sub_2", number),
            id("shop", &acme, "o", "psub_1", number),
            id("sho", &acme, "op", "sub_1", number),
            id("shop", &of_two, "op", "sub_1", number),
            id("shop", &Scope::of(&Global), "op", "sub_1", number),
            *RecordId::new("shop", &acme, "op", &Key::new("sub_1").unwrap()).as_bytes(),
        ];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert_eq!(all[0], id("shop", &acme, "op", "sub_1", Sequence::Number(2)), "its place does not name it");
    }

    #[test]
    fn clause_42_a_debug_shows_eight_digits_and_no_object() {
        let id = OrderId::new("shop", &Scope::of("acme"), "stripe", "sub_secret", Sequence::Number(7));
        let shown = format!("{id:?}");
        assert!(shown.len() == "OrderId(#00000000)".len() && !shown.contains("secret"), "{shown}");
    }
}
