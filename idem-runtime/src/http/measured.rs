//! Parts of a request's way that `bench` measures one by one. Nobody else calls this, and nothing else is promised of it.
#![allow(missing_docs, reason = "hidden")]

use axum::response::Response;

use super::{header, reply};
use crate::{
    fingerprint::{Content, Fingerprint, Material, fingerprint},
    operation::{KeyFormat, PayloadRule},
    store::StoredResponse,
};

#[must_use]
pub fn fingerprint_of_json(body: &[u8]) -> Fingerprint {
    let material = Material { path: &[], query: "", media_type: "application/json", body: Content::Bytes(body) };
    fingerprint(PayloadRule::Whole, &material)
}

#[must_use]
pub fn is_key(line: &[u8]) -> bool {
    header::parse_key([line], KeyFormat::Any).is_ok()
}

#[must_use]
pub fn replay(stored: &StoredResponse) -> Option<Response> {
    reply::replay(stored).ok()
}
