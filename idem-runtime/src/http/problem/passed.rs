//! Errors that a body passes on as its answer.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::{Asked, Problem, row, status};
use crate::{Runtime, error::Error, http::config::HttpConfig, key::RecordId, operation::Operation, outcome::Declared};

/// The problem with this crate's defaults; as the answer of an annotated handler, it gets the runtime's own settings.
///
/// Only a body has an error in its hands, so the problem never says that a new key is safe.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let error = self.with(|about| about.body_ran = true);
        let config = HttpConfig::default();
        let mut response = Problem::new(&error, &config, Asked::default(), |_| false).respond(&config);
        response.extensions_mut().insert(Passed(Arc::new(error)));
        response
    }
}

/// An error that a body has passed on, with its response.
#[derive(Clone)]
struct Passed(Arc<Error>);

impl Runtime {
    /// A body's response as it is, unless it is an error of ours passed on unchanged: that gets this runtime's format, as
    /// the answer to a call of `operation`. With the status that says what became of the run.
    ///
    /// That is the table's and not the format's. And what a sender of webhooks comes back for is as a 409 for the record,
    /// which speaks of the moment: neither kept nor, for the 503 that is sent, in doubt. Unless the body has `declared` that all
    /// is over: then there is nothing to come back for, and the sender is told so.
    pub(in crate::http) fn in_house_format(
        &self,
        operation: &'static Operation,
        record: Option<RecordId>,
        declared: Option<Declared>,
        mut response: Response,
    ) -> (StatusCode, Response) {
        let plain = response.status();
        match response.extensions_mut().remove::<Passed>() {
            Some(Passed(error)) if plain == row(error.kind()).status => {
                let asked = Asked { operation: Some(operation), record };
                let [usual, sent] = [false, asked.is_webhook()].map(|to| status(error.kind(), &self.config().http, to));
                let judged = if sent == usual { usual } else { StatusCode::CONFLICT };
                let mut told = self.tell(&error, asked);
                if let Some(declared) = declared {
                    told.extensions_mut().insert(declared); // it stood on the response that this one replaces
                }
                if sent != usual && declared == Some(Declared::Final) {
                    *told.status_mut() = StatusCode::OK;
                }
                (judged, told)
            }
            _ => (plain, response),
        }
    }
}
