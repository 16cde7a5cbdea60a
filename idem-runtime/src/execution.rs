//! What a body may know of its own run: [`Execution`].

use std::{
    fmt,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

use crate::{
    Runtime,
    error::{Error, ErrorKind},
    key::RecordId,
    operation::Operation,
    outcome::Declared,
    steps::Journal,
    store::{Attempt, Fence, Link, Owned},
    transaction::{Links, Slot},
};

/// The run that a body is part of. Ask for it with `#[idem] exec: Execution`.
///
/// ```
/// # #[cfg(feature = "axum")] {
/// # use axum::{Json, http::StatusCode};
/// # use idem_runtime::{Error, Execution, idempotent};
/// # async fn charge_card(_key: &str) -> String { String::new() }
/// #[idempotent(scope = global, op = "charge", ttl = "24h")]
/// async fn charge(#[idem] exec: Execution, Json(amount): Json<u64>) -> Result<StatusCode, Error> {
///     let id = charge_card(exec.provider_key()).await; // the provider sees one key, however often we try
///     exec.link("gateway", &id).await?; // recorded with it, for refunds
///     Ok(StatusCode::CREATED)
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Execution {
    run: Arc<Run>,
    /// In a transaction: links wait here for its commit.
    links: Option<Links>,
}

/// What one run is, for its body.
pub(crate) struct Run {
    pub(crate) attempt: Attempt,
    pub(crate) owned: Owned,
    pub(crate) cancelled: CancellationToken,
    provider_key: String,
    declared: AtomicU8,
    /// `None`: unprotected, nothing is recorded.
    record: Option<(Runtime, RecordId)>,
    /// Where the body's effects are recorded steps.
    journal: Option<Arc<Journal>>,
    /// Unprotected: where it runs all the same.
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        allow(dead_code, reason = "only the SQL stores have transactions")
    )]
    place: Option<(Runtime, &'static Operation)>,
}

/// The longest provider name and provider id, in bytes.
const MAX_LINK: usize = 512;

const SAID_NOTHING: u8 = 0;
const SAID_FINAL: u8 = 1;
const SAID_NOT_APPLIED: u8 = 2;

impl Execution {
    pub(crate) fn protected(
        runtime: &Runtime,
        record: RecordId,
        attempt: Attempt,
        owned: Owned,
        cancelled: CancellationToken,
        journal: Option<Arc<Journal>>,
    ) -> Self {
        let provider_key = record.provider_key(owned.epoch.0, "");
        Self::new(Run {
            attempt,
            owned,
            cancelled,
            provider_key,
            declared: AtomicU8::new(SAID_NOTHING),
            record: Some((runtime.clone(), record)),
            journal,
            place: None,
        })
    }

    /// For a request without a key, or a method that needs none: runs as a plain handler would.
    pub(crate) fn unprotected(runtime: &Runtime, operation: &'static Operation) -> Self {
        let attempt = Attempt::random();
        Self::new(Run {
            attempt,
            owned: Owned::unclaimed(),
            cancelled: CancellationToken::new(),
            provider_key: RecordId::from(*attempt.as_bytes()).provider_key(0, ""),
            declared: AtomicU8::new(SAID_NOTHING),
            record: None,
            journal: None,
            place: Some((runtime.clone(), operation)),
        })
    }

    fn new(run: Run) -> Self {
        Self { run: Arc::new(run), links: None }
    }

    /// Links are recorded by a commit.
    pub(crate) fn linked_by(self, links: &Links) -> Self {
        Self { links: Some(Arc::clone(links)), ..self }
    }

    /// The random id of this run.
    #[must_use]
    pub fn attempt(&self) -> Attempt {
        self.run.attempt
    }

    /// Runs so far under this key, this one included; at least 1.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.run.owned.attempts
    }

    /// A number that grows with every run under this key: hand it to a system that refuses older ones
    /// (a fencing token). Zero where the run is not protected. A body with a `Tx` on SQLite that was rolled back has given its
    /// number back: the next run may get the same one.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.run.owned.fence
    }

    /// The key to hand to a provider that dedupes: 64 hex digits, derived, never the client's own key.
    ///
    /// The same over re-runs (`in_doubt = rerun_deduped`), so that the provider sees one operation; new once the key starts afresh (after a
    /// release, or after `refuse_late`), so that a corrected retry does not meet the provider's memory of the refused one. No
    /// provider key comes back, not even after a record was removed; except that of a body with a `Tx` on SQLite that was
    /// rolled back: the retry may get the same one. Unprotected: random.
    #[must_use]
    pub fn provider_key(&self) -> &str {
        &self.run.provider_key
    }

    /// Fires when going on is of no use: the lease is lost, the deadline has passed, or the process stops waiting
    /// for this body at shutdown. The body is not stopped by it; pass it on, or `select!` on it.
    #[must_use]
    pub fn cancelled(&self) -> &CancellationToken {
        &self.run.cancelled
    }

    /// Records what a provider calls this operation, for refunds, chargebacks and 410 answers. Kept for as long as the record:
    /// see [`Runtime::find_by_link`](crate::Runtime::find_by_link).
    ///
    /// `provider` and `id` are 1 to 512 bytes each. Not fenced: a link that comes late is evidence all the same.
    /// Recording the same link again changes nothing. Unprotected: does nothing. With a [`Tx`](crate::Tx), it is recorded by
    /// the commit, or not at all.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the store does not take it within `store_timeout`;
    /// [`ErrorKind::InvalidLink`] if `provider` or `id` is empty or too long. Both answer 5xx, so that a handler that
    /// passes them on holds its key in doubt: links are recorded after an effect.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the link may or may not be recorded. Call it again.
    pub async fn link(&self, provider: &str, id: &str) -> Result<(), Error> {
        let Some((runtime, record)) = &self.run.record else { return Ok(()) };
        if !is_link(provider, id) {
            let detail = "a link's provider and id are 1 to 512 bytes without NUL";
            return Err(Error::new(ErrorKind::InvalidLink).with(|about| about.detail = Some(detail)));
        }
        let link = Link {
            record: *record,
            epoch: self.run.owned.epoch,
            attempt: self.run.attempt,
            provider: provider.to_owned(),
            id: id.to_owned(),
        };
        if let Some(links) = &self.links {
            links.lock().unwrap_or_else(PoisonError::into_inner).push(link);
            return Ok(());
        }
        if let Some(journal) = self.journal() {
            journal.linked(); // first: should it be lost, what it tells of has happened all the same
        }
        // The body is under way, so a caller who is shown this error must not take a new key for safe.
        let failed = |error| Error::from_store(error).with(|about| about.body_ran = true);
        runtime.ask(runtime.store().link(&[link])).await.map_err(failed)
    }

    /// Says that the effect happened and that this answer is final, whatever its status or error: a card that was
    /// declined and charged a fee, say. The last of this and [`not_applied`](Self::not_applied) counts, and what
    /// the answer itself says ([`Final`](crate::Final), [`NotApplied`](crate::NotApplied)) counts more.
    pub fn is_final(&self) {
        self.run.declared.store(SAID_FINAL, Ordering::Release);
    }

    /// Says that surely nothing happened, whatever the status or error: the key is free again.
    pub fn not_applied(&self) {
        self.run.declared.store(SAID_NOT_APPLIED, Ordering::Release);
    }

    /// False for a request without a key (`optional`) and for methods that need none: nothing is recorded, and a
    /// retry runs again.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.run.record.is_some()
    }

    pub(crate) fn record(&self) -> Option<&(Runtime, RecordId)> {
        self.run.record.as_ref()
    }

    pub(crate) fn epoch(&self) -> Fence {
        self.run.owned.epoch
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.run.journal.as_deref()
    }

    /// Where it runs, if it is not protected.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn unprotected_by(&self) -> Option<&(Runtime, &'static Operation)> {
        self.run.place.as_ref()
    }

    pub(crate) fn declared(&self) -> Option<Declared> {
        match self.run.declared.load(Ordering::Acquire) {
            SAID_FINAL => Some(Declared::Final),
            SAID_NOT_APPLIED => Some(Declared::NotApplied),
            _ => None,
        }
    }
}

/// Without the provider key: whoever has it can speak to the provider for this operation.
impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("attempt", &self.run.attempt)
            .field("owned", &self.run.owned)
            .field("protected", &self.is_protected())
            .finish_non_exhaustive()
    }
}

/// What a link may be.
pub(crate) fn is_link(provider: &str, id: &str) -> bool {
    [provider, id].iter().all(|text| (1..=MAX_LINK).contains(&text.len()) && !text.contains('\0'))
}

/// What the runtime hands to `#[idem]` parameters.
#[derive(Debug)]
pub struct Supply {
    execution: Execution,
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        allow(dead_code, reason = "only the SQL stores have transactions")
    )]
    transaction: Option<Arc<Slot>>,
}

impl Supply {
    pub(crate) fn new(execution: Execution, transaction: Option<Arc<Slot>>) -> Self {
        Self { execution, transaction }
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn transaction(&self) -> Option<&Arc<Slot>> {
        self.transaction.as_ref()
    }
}

/// A type that `#[idem]` parameters may have. Sealed.
#[diagnostic::on_unimplemented(
    message = "the runtime cannot supply a `{Self}`",
    label = "`#[idem]` parameters are of type `Execution`, `Steps`, `Tx<Sqlite>` or `Tx<Postgres>`",
    note = "take `#[idem]` off a parameter that comes from the request or the caller"
)]
pub trait Supplied: sealed::Sealed + Sized {
    #[doc(hidden)]
    fn supply(from: &mut Supply) -> Result<Self, Error>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Execution {}
}

impl Supplied for Execution {
    fn supply(from: &mut Supply) -> Result<Self, Error> {
        Ok(from.execution.clone())
    }
}
