//! What "the same payload" means: [`Fingerprint`], one SHA-256 over the canonical form of a request.
//!
//! Canonical, because a retry may come with its members in another order, with other white space and with another
//! multipart boundary; from the received bytes, because a number that went through `f64` or through a struct is no
//! longer what the client sent.

mod json;

pub(crate) use self::json::Pointed;
#[cfg(test)]
mod tests;

use std::fmt;

use sha2::{Digest, Sha256};

use crate::{
    key::{Scope, hex},
    operation::PayloadRule,
};

/// The bit of an algorithm that says: the first half of the digest is that of the scope.
const SCOPED: i16 = 1 << 14;
const HALF: usize = 16;

/// What a record remembers of the payload it belongs to: enough to recognise it, not to read it.
///
/// Not comparable with `==`: whether two payloads are the same is decided by [`Fingerprint::matches`].
#[derive(Clone, Copy)]
pub struct Fingerprint {
    algorithm: i16,
    digest: [u8; 32],
}

impl Fingerprint {
    /// Counts the ways of computing a fingerprint; with the payload rule it makes [`algorithm`](Self::algorithm). Raised with every change that gives an unchanged payload another
    /// digest, so that records of an older version are not taken for mismatches.
    pub const ALGORITHM: i16 = 1;

    /// Of a payload that nobody knows: counts as the same as any, so a [`peek`](crate::store::Store::peek) with it finds
    /// whatever answer is due. Its algorithm is one by which nothing is ever stored.
    #[must_use]
    pub fn unknown() -> Self {
        Self { algorithm: 0, digest: [0; 32] }
    }

    /// A fingerprint as a store kept it.
    #[must_use]
    pub fn from_parts(algorithm: i16, digest: [u8; 32]) -> Self {
        Self { algorithm, digest }
    }

    /// How the digest was computed; see [`Fingerprint::ALGORITHM`].
    #[must_use]
    pub fn algorithm(&self) -> i16 {
        self.algorithm
    }

    /// The 32 bytes, as stores keep them.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The same payload, of this scope only: what a record keeps whose identity says nothing of the scope.
    pub(crate) fn within(self, scope: &Scope) -> Self {
        let mut digest = scope.digest();
        digest[HALF..].copy_from_slice(&self.digest[..HALF]);
        Self { algorithm: self.algorithm | SCOPED, digest }
    }

    /// Whether both are of the same payload, as far as can be known: digests of different algorithms count as a match.
    /// A false match only replays an answer; a false mismatch drives the client to a new key, and that to a second effect.
    ///
    /// Not so the scope (`foreign_scope = reject`): an algorithm with the bit `0x4000` has the scope in the first 16 bytes
    /// of its digest, by whatever else the payload was digested. Those are always compared, and never match where one of
    /// the two has none: a false match would show one caller's answer to another.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        if self.algorithm == other.algorithm { self.digest == other.digest } else { self.is_of_the_scope_of(other) }
    }

    /// Whether nothing is known against both being of one scope. What another scope's record is may not be told, even where
    /// its state cannot be read.
    #[must_use]
    pub fn is_of_the_scope_of(&self, other: &Self) -> bool {
        self.scope() == other.scope()
    }

    fn scope(&self) -> Option<&[u8]> {
        (self.algorithm & SCOPED != 0).then_some(&self.digest[..HALF])
    }
}

/// Eight hex digits of the digest: enough to find it in the logs.
impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint(#{})", hex(&self.digest[..4]))
    }
}

/// What a fingerprint is taken of. The method and the route are missing on purpose: `op` says which operation it is,
/// and a renamed route must not turn due replays into mismatches.
pub(crate) struct Material<'a> {
    /// Decoded path parameter values, in order.
    pub path: &'a [&'a str],
    /// The query as received, without `?`.
    pub query: &'a str,
    /// The text of the content type; empty if there is none.
    pub media_type: &'a str,
    pub body: Content<'a>,
}

pub(crate) enum Content<'a> {
    Bytes(&'a [u8]),
    /// A multipart body: its bytes differ from retry to retry, since the boundary does.
    Parts(&'a [Part]),
}

/// One part of a multipart body.
pub(crate) struct Part {
    pub name: Option<String>,
    pub filename: Option<String>,
    pub content_type: Option<String>,
    /// SHA-256 of the content.
    pub digest: [u8; 32],
}

/// The fingerprint of `material` under `rule`.
pub(crate) fn fingerprint(rule: PayloadRule, material: &Material<'_>) -> Fingerprint {
    let mut input = Input::default();
    match rule {
        PayloadRule::Whole => {
            let media_type = essence(material.media_type);
            input.tag(Tag::Whole);
            input.head(material, &media_type);
            input.canonical_body(&material.body, &media_type);
        }
        PayloadRule::Raw => {
            input.tag(Tag::Raw);
            input.head(material, &essence(material.media_type));
            input.raw_body(&material.body);
        }
        PayloadRule::Fields(pointers) => {
            input.tag(Tag::Fields);
            input.path(material.path);
            input.selected_body(&material.body, pointers);
        }
        PayloadRule::None => input.tag(Tag::None),
    }
    // The rule counts as part of the algorithm: a deploy that changes it must not turn due replays into mismatches.
    let rule = match rule {
        PayloadRule::Whole => 0,
        PayloadRule::Raw => 1,
        PayloadRule::Fields(_) => 2,
        PayloadRule::None => 3,
    };
    Fingerprint { algorithm: Fingerprint::ALGORITHM * 4 + rule, digest: input.0.finalize().into() }
}

/// The digest of JSON in its canonical form.
pub(crate) fn canonical_digest(json: &[u8]) -> [u8; 32] {
    let mut input = Input::default();
    input.json_or_raw(json, json::document);
    input.0.finalize().into()
}

/// What JSON pointers name in a body; `None` if that is not JSON, or names a member twice on their way.
pub(crate) fn pointed<const N: usize>(body: &[u8], pointers: [&str; N]) -> Option<[Pointed; N]> {
    json::pointed(body, pointers).ok()
}

/// What is hashed. What can be of several kinds starts with its tag, every text with its length, every list with its
/// count, so that no two different payloads give the same input.
#[derive(Clone, Default)]
struct Input(Sha256);

/// The numbers are part of the algorithm.
#[derive(Clone, Copy)]
enum Tag {
    Whole = 1,
    Raw = 2,
    Fields = 3,
    None = 4,

    Bytes = 16,
    Json = 17,
    Pairs = 18,
    Parts = 19,
    Selected = 20,

    Absent = 32,
    Present = 33,

    Object = 48,
    Array = 49,
    Text = 50,
    Scalar = 51,
}

impl Input {
    fn tag(&mut self, tag: Tag) {
        self.0.update([tag as u8]);
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn optional(&mut self, text: Option<&str>) {
        match text {
            None => self.tag(Tag::Absent),
            Some(text) => {
                self.tag(Tag::Present);
                self.bytes(text.as_bytes());
            }
        }
    }

    fn path(&mut self, values: &[&str]) {
        self.count(values.len());
        for value in values {
            self.bytes(value.as_bytes());
        }
    }

    fn head(&mut self, material: &Material<'_>, media_type: &str) {
        self.path(material.path);
        self.pairs(material.query.as_bytes());
        self.bytes(media_type.as_bytes());
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.tag(Tag::Bytes);
        self.bytes(bytes);
    }

    fn raw_body(&mut self, body: &Content<'_>) {
        match body {
            Content::Parts(parts) => self.parts(parts),
            Content::Bytes(bytes) => self.raw(bytes),
        }
    }

    fn canonical_body(&mut self, body: &Content<'_>, media_type: &str) {
        match body {
            Content::Bytes(bytes) if is_json(media_type) => self.json_or_raw(bytes, json::document),
            Content::Bytes(bytes) if media_type == "application/x-www-form-urlencoded" => self.pairs(bytes),
            Content::Bytes(_) | Content::Parts(_) => self.raw_body(body),
        }
    }

    /// The bytes alone decide whether this is JSON: whoever wrote pointers said that it is, and a sender that labels it
    /// otherwise must not lose what they are for.
    fn selected_body(&mut self, body: &Content<'_>, pointers: &[&str]) {
        match body {
            Content::Bytes(bytes) => self.json_or_raw(bytes, |input, bytes| json::selected(input, bytes, pointers)),
            Content::Parts(_) => self.raw_body(body),
        }
    }

    /// All of what `write` says, or the raw bytes and nothing of it.
    fn json_or_raw(&mut self, bytes: &[u8], write: impl FnOnce(&mut Self, &[u8]) -> Result<(), json::NotCanonical>) {
        let mut attempt = self.clone();
        match write(&mut attempt, bytes) {
            Ok(()) => *self = attempt,
            Err(json::NotCanonical) => self.raw(bytes),
        }
    }

    /// Decoded pairs. Between different names the order means nothing, within one name it does.
    fn pairs(&mut self, encoded: &[u8]) {
        let mut pairs: Vec<_> = form_urlencoded::parse(encoded).collect();
        // Bytes that are not UTF-8 all decode to this character, and must not all be the same payload.
        let lossy = |text: &str| text.contains(char::REPLACEMENT_CHARACTER);
        if pairs.iter().any(|(name, value)| lossy(name) || lossy(value)) {
            return self.raw(encoded);
        }
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.tag(Tag::Pairs);
        self.count(pairs.len());
        for (name, value) in &pairs {
            self.bytes(name.as_bytes());
            self.bytes(value.as_bytes());
        }
    }

    fn parts(&mut self, parts: &[Part]) {
        self.tag(Tag::Parts);
        self.count(parts.len());
        for part in parts {
            self.optional(part.name.as_deref());
            self.optional(part.filename.as_deref());
            self.optional(part.content_type.as_deref().map(essence).as_deref());
            self.bytes(&part.digest);
        }
    }
}

/// A media type without its parameters, in lower case: `charset` and `boundary` may differ between equal requests.
fn essence(media_type: &str) -> String {
    let end = media_type.find(';').unwrap_or(media_type.len());
    media_type[..end].trim_ascii().to_ascii_lowercase()
}

fn is_json(media_type: &str) -> bool {
    matches!(media_type, "application/json" | "text/json") || media_type.ends_with("+json")
}
