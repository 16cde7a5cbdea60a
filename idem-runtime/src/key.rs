//! Whose key it is, and which record it names: [`Key`], [`Scope`], [`RecordId`].
//!
//! Header text and expressions become a [`Key`] at the door; no raw key travels further, is stored, or reaches a log.

mod order;
mod parts;

use std::{borrow::Cow, fmt, str::FromStr, sync::Arc};

use sha2::{Digest, Sha256};

pub use self::order::OrderId;
#[cfg(feature = "axum")] // read from requests only
pub(crate) use self::order::Sequence;

/// A validated idempotency key: 1 to 1,024 bytes. Held only until the [`RecordId`] is derived from it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Key {
    /// The longest key in bytes, whatever its source. (A header carries at most 255.)
    pub const MAX: usize = 1024;

    /// # Errors
    /// The reason in words, without the key, if it is empty or longer than [`Key::MAX`] bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, InvalidKey> {
        let bytes = bytes.into();
        match bytes.len() {
            0 => Err(InvalidKey("the key is empty")),
            1..=Self::MAX => Ok(Self(bytes)),
            _ => Err(InvalidKey("the key is longer than 1024 bytes")),
        }
    }
}

/// Eight hex digits of a digest: enough to find it in the logs, nothing to learn from.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = Sha256::digest(&self.0);
        write!(f, "Key(#{})", hex(&digest[..4]))
    }
}

/// Why a key was refused. Never contains the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidKey(pub(crate) &'static str);

/// A value that can be a key: `key = event.id` on the attribute.
///
/// Text and bytes are taken as they are, integers as decimal text, a `Uuid` hyphenated in lower case.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an idempotency key",
    label = "`key` must be a string, bytes, an integer or a `Uuid`",
    note = "implement `idem_runtime::KeyPart` for a type of your own"
)]
pub trait KeyPart {
    /// The bytes of the key.
    fn key_bytes(&self) -> Cow<'_, [u8]>;
}

/// A value that says whose key it is: `scope = "tenant"` on the attribute.
///
/// Implemented for strings, integers, `Uuid`, references and tuples; implement it for your own types by writing
/// the parts that identify the acting principal (a tenant, an account: not a credential, which rotates).
/// Deliberately not implemented for `Option`: a key without an owner would be shared by all callers.
///
/// ```
/// # use idem_runtime::{ScopePart, ScopeWriter};
/// struct Tenant { id: u64 }
///
/// impl ScopePart for Tenant {
///     fn write_scope(&self, out: &mut ScopeWriter) {
///         self.id.write_scope(out);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say whose key it is",
    label = "`scope` must be a string, an integer, a `Uuid`, a tuple of those, or implement `ScopePart`",
    note = "for a type of your own, implement `idem_runtime::ScopePart` and write the part that identifies the caller",
    note = "not for an `Option`: let an extractor refuse the request, or write `scope = global` if all callers share their keys"
)]
pub trait ScopePart {
    /// Writes this value's parts, in order.
    fn write_scope(&self, out: &mut ScopeWriter);
}

/// The scope of an operation whose annotation says `scope = global`: all callers share its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Global;

impl ScopePart for Global {
    fn write_scope(&self, _: &mut ScopeWriter) {}
}

/// Collects the parts of a scope.
#[derive(Default)]
pub struct ScopeWriter {
    digest_input: Vec<u8>,
    text: String,
}

impl ScopeWriter {
    /// Adds one part. Parts are length-prefixed in the identity, so `("a", "bc")` and `("ab", "c")` differ.
    pub fn part(&mut self, part: &str) {
        length_prefixed(&mut self.digest_input, part.as_bytes());
        if self.digest_input.len() > part.len() + LENGTH {
            self.text.push('/');
        }
        for c in part.chars() {
            match c {
                '%' => self.text.push_str("%25"),
                '/' => self.text.push_str("%2F"),
                '\0' => self.text.push_str("%00"), // no database takes it in text
                c => self.text.push(c),
            }
        }
    }
}

impl fmt::Debug for ScopeWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeWriter").finish_non_exhaustive()
    }
}

/// Whose key it is. Two scopes never see each other's records.
#[derive(Clone, PartialEq, Eq)]
pub struct Scope {
    digest_input: Vec<u8>,
    text: Arc<str>,
}

impl Scope {
    /// The scope that `part` writes.
    pub fn of<T: ScopePart + ?Sized>(part: &T) -> Self {
        let mut out = ScopeWriter::default();
        part.write_scope(&mut out);
        Self::from(out)
    }

    /// The parts joined by `/`, with `%`, `/` and NUL escaped, so that no two scopes read the same (but for one of a
    /// single empty part, which reads as [`Global`]): for operators, not for the identity.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What tells it from every other.
    pub(crate) fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.digest_input).into()
    }

    pub(crate) fn text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// What logs carry of it, as eight hex digits.
    pub(crate) fn short(&self) -> u32 {
        let [a, b, c, d, ..] = self.digest();
        u32::from_be_bytes([a, b, c, d])
    }
}

impl From<ScopeWriter> for Scope {
    fn from(out: ScopeWriter) -> Self {
        Self { digest_input: out.digest_input, text: out.text.into() }
    }
}

/// A scope can hold customer names, so logs get a digest.
impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope(#{:08x})", self.short())
    }
}

/// The first 16 bytes of SHA-256 over `before`, as it is, and the parts, each with its length.
fn identity(before: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    let mut input = Vec::with_capacity(128);
    input.extend_from_slice(before);
    parts.iter().for_each(|part| length_prefixed(&mut input, part));
    let mut id = [0; 16];
    id.copy_from_slice(&Sha256::digest(&input)[..16]);
    id
}

/// The identity of a record: the first 16 bytes of SHA-256 over the length-prefixed namespace, scope, operation
/// and key. Safe to show to the caller it belongs to; says nothing about the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId([u8; 16]);

impl RecordId {
    /// The record that `key` names for `op` in `scope`.
    #[must_use]
    pub fn new(namespace: &str, scope: &Scope, op: &str, key: &Key) -> Self {
        Self::digested([namespace.as_bytes(), &scope.digest_input, op.as_bytes(), &key.0])
    }

    /// The record that `key` names for `op`, whoever asks. No scope has these bytes, for its parts begin with a length: so
    /// it is no record of [`new`](Self::new).
    pub(crate) fn of_all_scopes(namespace: &str, op: &str, key: &Key) -> Self {
        const { assert!(ALL_SCOPES.len() < LENGTH) };
        Self::digested([namespace.as_bytes(), ALL_SCOPES, op.as_bytes(), &key.0])
    }

    fn digested(parts: [&[u8]; 4]) -> Self {
        Self(identity(&[], &parts))
    }

    /// The 16 bytes, as stores keep them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The first eight hex digits: what logs carry.
    pub(crate) fn short(self) -> String {
        hex(&self.0[..4])
    }

    /// The key for an external call made by this operation: SHA-256 over record, epoch and step as 64 hex digits.
    /// Stable over re-runs of one epoch, and new once the key starts afresh: no epoch comes twice.
    pub(crate) fn provider_key(self, epoch: i64, step: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(epoch.to_be_bytes());
        hash.update(step.as_bytes());
        hex(&hash.finalize())
    }
}

impl From<[u8; 16]> for RecordId {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

/// 32 hex digits.
impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordId({self})")
    }
}

/// Reads the 32 hex digits that [`Display`](fmt::Display) writes.
impl FromStr for RecordId {
    type Err = InvalidRecordId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(InvalidRecordId);
        }
        u128::from_str_radix(text, 16).map(|n| Self(n.to_be_bytes())).map_err(|_| InvalidRecordId)
    }
}

/// From the same text: `Path<RecordId>` extracts it.
impl<'de> serde::Deserialize<'de> for RecordId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The text is not the 32 hex digits of a [`RecordId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record id is 32 hex digits")]
pub struct InvalidRecordId;

const LENGTH: usize = size_of::<u64>();

/// In the place of a scope, where it is no part of the identity.
const ALL_SCOPES: &[u8] = b"all";

fn length_prefixed(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u64).to_be_bytes());
    out.extend_from_slice(part);
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
        text
    })
}

#[cfg(test)]
mod tests;
