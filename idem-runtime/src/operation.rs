//! What one annotation says, and the registry of all of them.

use std::time::Duration;

use serde::Serialize;

/// What `#[idempotent(..)]` says about one operation. Built by the attribute in a `static`; `None` means that the
/// runtime's default applies.
#[derive(Debug, Clone)]
pub struct Operation {
    pub(crate) op: &'static str,
    pub(crate) kind: Kind,
    pub(crate) place: Place,
    /// As the annotation has it, for people: an expression's text, or `global`.
    pub(crate) scope: &'static str,
    /// The text of the key's expression; `None`: it comes in a header.
    pub(crate) key: Option<&'static str>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) refuse_late: Option<Duration>,
    pub(crate) header: Option<&'static str>,
    pub(crate) optional: bool,
    pub(crate) key_format: KeyFormat,
    pub(crate) payload: PayloadRule,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) client_errors: ClientErrors,
    pub(crate) in_doubt: InDoubt,
    pub(crate) timeout: Option<Duration>,
    pub(crate) foreign_scope: ForeignScope,
    /// Its calls are events that a sender delivers again until it is told that all is well.
    pub(crate) webhook: bool,
    /// Of the events of one object, none is applied after a later one.
    pub(crate) order: Option<OrderRule>,
    /// The body runs in a transaction of this database.
    pub(crate) transaction: Option<Database>,
    /// The body's effects are recorded steps.
    pub(crate) steps: bool,
    /// The parameter that is kept for whoever goes on with it.
    pub(crate) input: Option<&'static str>,
}

/// Where an annotation stands. Two annotations at one place are one: an attribute above ours may emit the item again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// As `file!()`.
    pub file: &'static str,
    /// As `line!()`.
    pub line: u32,
    /// As `column!()`.
    pub column: u32,
    /// The function's name: inside of one `macro_rules!` call, all places are one.
    pub function: &'static str,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{} ({})", self.file, self.line, self.column, self.function)
    }
}

/// What carries the annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An axum handler.
    Handler,
    /// A plain function or method.
    Function,
}

/// What a key must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyFormat {
    /// 1 to 255 visible ASCII characters.
    #[default]
    Any,
    /// A hyphenated UUID, compared in lower case.
    Uuid,
}

/// What "the same payload" means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PayloadRule {
    /// Path parameter values, query, media type and the canonical body.
    #[default]
    Whole,
    /// As `Whole`, but the body byte for byte.
    Raw,
    /// Path parameter values and the members that these JSON pointers name.
    Fields(&'static [&'static str]),
    /// The key alone decides.
    None,
}

/// What a duplicate gets while the first run is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InFlight {
    /// 409 with `Retry-After`, at once.
    #[default]
    Reject,
    /// Wait this long for the first run's answer, then 409.
    Wait(Duration),
    /// 202 with the place where the result can be fetched: see `Builder::operations_at`. A plain function's caller has
    /// nothing to fetch it with, and is refused as by `Reject`.
    Accepted,
}

/// What happens to a 4xx of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ClientErrors {
    /// Nothing is stored; the same or a corrected payload runs.
    #[default]
    Release,
    /// Replayed this long to the same payload; a corrected one runs.
    Keep(Duration),
    /// Final, as a success is.
    Store,
}

/// What becomes of an operation whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InDoubt {
    /// It is never run again by itself; see [`Runtime::resolve`](crate::Runtime::resolve).
    #[default]
    Hold,
    /// The next retry with the same payload runs it again, in the builder's `provider_window`: all that it does outside
    /// dedupes by [`Execution::provider_key`](crate::Execution::provider_key).
    RerunDeduped,
    /// Its effects are recorded steps ([`Steps`](crate::Steps)): the next retry with the same payload continues it.
    Continued,
}

/// What a key means to another scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForeignScope {
    /// Another key: the scope is part of the identity.
    #[default]
    Isolate,
    /// The same key, used with another payload: the scope is part of the fingerprint.
    Reject,
}

/// Where a JSON body says which object its event is about and where the event stands among that object's, as JSON pointers
/// (RFC 6901).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OrderRule {
    /// The object's id: text or an integer.
    pub object: &'static str,
    /// What grows from event to event: an integer, or an RFC 3339 time.
    pub sequence: &'static str,
}

/// Whose transaction a body runs in, as its signature says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// A type parameter or an alias: known when it is called.
    Any,
    /// As [`Transactions::database`](crate::store::Transactions::database).
    Named(&'static str),
}

impl Operation {
    /// What a duplicate gets while the first run is under way. A sender of events has nothing to fetch a result with.
    pub(crate) fn in_flight_or(&self, default: InFlight) -> InFlight {
        match self.in_flight.unwrap_or(default) {
            InFlight::Accepted if self.webhook => InFlight::Reject,
            in_flight => in_flight,
        }
    }

    /// A run that failed or was lost is run again by the next retry.
    pub(crate) fn reruns(&self) -> bool {
        self.in_doubt != InDoubt::Hold
    }
}

/// For the attribute's expansion: everything here is `const`, so an annotation costs nothing at run time.
#[doc(hidden)]
impl Operation {
    #[must_use]
    pub const fn new(op: &'static str, kind: Kind, place: Place) -> Self {
        Self {
            op,
            kind,
            place,
            scope: "global",
            key: None,
            ttl: None,
            refuse_late: None,
            header: None,
            optional: false,
            key_format: KeyFormat::Any,
            payload: PayloadRule::Whole,
            in_flight: None,
            client_errors: ClientErrors::Release,
            in_doubt: InDoubt::Hold,
            timeout: None,
            foreign_scope: ForeignScope::Isolate,
            webhook: false,
            order: None,
            transaction: None,
            steps: false,
            input: None,
        }
    }

    #[must_use]
    pub const fn scope(self, text: &'static str) -> Self {
        Self { scope: text, ..self }
    }

    #[must_use]
    pub const fn key(self, text: &'static str) -> Self {
        Self { key: Some(text), ..self }
    }

    #[must_use]
    pub const fn ttl(self, seconds: u64) -> Self {
        Self { ttl: Some(Duration::from_secs(seconds)), ..self }
    }

    #[must_use]
    pub const fn refuse_late(self, seconds: u64) -> Self {
        Self { refuse_late: Some(Duration::from_secs(seconds)), ..self }
    }

    #[must_use]
    pub const fn header(self, name: &'static str) -> Self {
        Self { header: Some(name), ..self }
    }

    #[must_use]
    pub const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    #[must_use]
    pub const fn key_format(self, key_format: KeyFormat) -> Self {
        Self { key_format, ..self }
    }

    #[must_use]
    pub const fn payload(self, payload: PayloadRule) -> Self {
        Self { payload, ..self }
    }

    #[must_use]
    pub const fn in_flight(self, in_flight: InFlight) -> Self {
        Self { in_flight: Some(in_flight), ..self }
    }

    #[must_use]
    pub const fn client_errors(self, client_errors: ClientErrors) -> Self {
        Self { client_errors, ..self }
    }

    #[must_use]
    pub const fn in_doubt(self, in_doubt: InDoubt) -> Self {
        Self { in_doubt, ..self }
    }

    #[must_use]
    pub const fn timeout(self, seconds: u64) -> Self {
        Self { timeout: Some(Duration::from_secs(seconds)), ..self }
    }

    #[must_use]
    pub const fn foreign_scope(self, foreign_scope: ForeignScope) -> Self {
        Self { foreign_scope, ..self }
    }

    #[must_use]
    pub const fn webhook(self) -> Self {
        Self { webhook: true, ..self }
    }

    #[must_use]
    pub const fn order(self, object: &'static str, sequence: &'static str) -> Self {
        Self { order: Some(OrderRule { object, sequence }), ..self }
    }

    #[must_use]
    pub const fn input(self, parameter: &'static str) -> Self {
        Self { input: Some(parameter), ..self }
    }

    #[must_use]
    pub const fn transaction(self, database: Database) -> Self {
        Self { transaction: Some(database), ..self }
    }

    #[must_use]
    pub const fn steps(self) -> Self {
        Self { steps: true, in_doubt: InDoubt::Continued, ..self }
    }
}

/// An annotation of this program.
#[doc(hidden)]
#[derive(Debug)]
pub struct Registered(pub &'static Operation);
inventory::collect!(Registered);

/// The annotation that performs `op`, if this program has one.
pub(crate) fn named(op: &str) -> Option<&'static Operation> {
    inventory::iter::<Registered>.into_iter().map(|&Registered(operation)| operation).find(|known| known.op == op)
}

/// Every annotation of this program, each place once.
pub(crate) fn registered() -> Vec<&'static Operation> {
    let mut all: Vec<&'static Operation> = Vec::new();
    for &Registered(operation) in inventory::iter::<Registered> {
        if !all.iter().any(|known| known.op == operation.op && known.place == operation.place) {
            all.push(operation);
        }
    }
    all
}
