//! What a document says of one operation.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use utoipa::openapi::{
    Components, Content, HeaderBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder,
    Schema, SchemaFormat, Type,
    extensions::Extensions,
    path::{Operation, Parameter, ParameterBuilder, ParameterIn},
    schema::ArrayBuilder,
};

use super::methods;
use crate::{
    error::ErrorKind,
    http::{
        config::HttpConfig,
        problem::{ALL, retry_after, row, status},
        reply::{REPLAYED, STATUS},
    },
    operations::{ForeignScope, InDoubt, InFlight, KeyFormat, KeyRule, OperationInfo, PayloadRule},
};

const EXTENSION: &str = "x-idempotency";
const SCHEMA: &str = "IdempotencyProblem";

pub(super) struct Description<'a> {
    info: &'a OperationInfo,
    config: &'a HttpConfig,
}

impl<'a> Description<'a> {
    pub(super) fn new(info: &'a OperationInfo, config: &'a HttpConfig) -> Self {
        Self { info, config }
    }

    /// Adds what is not there.
    pub(super) fn add_to(&self, api: &mut OpenApi, path: &str, method: &str) {
        let Some(item) = api.paths.paths.get_mut(path) else { return };
        let components = api.components.get_or_insert_default();
        let of_the_path = item.parameters.clone().unwrap_or_default();
        let Some((_, operation)) = methods(item).find(|(name, _)| *name == method) else { return };
        self.add_parameter(operation, &of_the_path, components);
        self.add_responses(operation);
        for (_, response) in operation.responses.responses.iter_mut().filter(|(status, _)| is_success(status)) {
            if let RefOr::T(response) = response {
                add_headers(response);
            }
        }
        let extensions = operation.extensions.get_or_insert_with(Extensions::default);
        extensions.entry(EXTENSION.to_owned()).or_insert_with(|| self.extension());
        if self.config.problem_response.is_none() {
            components.schemas.entry(SCHEMA.to_owned()).or_insert_with(|| problem_schema(&self.config.problem_base));
        }
    }

    fn add_parameter(&self, operation: &mut Operation, of_the_path: &[RefOr<Parameter>], components: &Components) {
        let KeyRule::Header { name, required, format } = &self.info.key else { return };
        let parameters = operation.parameters.get_or_insert_default();
        let is_there = parameters.iter().chain(of_the_path).any(|parameter| is_header(parameter, name, components));
        if !is_there {
            parameters.push(RefOr::T(self.parameter(name, *required, *format)));
        }
        if parameters.is_empty() {
            operation.parameters = None;
        }
    }

    fn parameter(&self, name: &str, required: bool, format: KeyFormat) -> Parameter {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        let schema = match format {
            KeyFormat::Any => schema.min_length(Some(1)).max_length(Some(255)),
            KeyFormat::Uuid => schema.format(Some(SchemaFormat::Custom("uuid".to_owned()))),
        };
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(if required { Required::True } else { Required::False })
            .description(Some(self.key_in_words(required)))
            .schema(Some(schema))
            .build()
    }

    fn key_in_words(&self, required: bool) -> String {
        let (ttl, refuse_late) = (self.info.ttl, self.info.refuse_late);
        let mut text = "One key per action, the same key on every retry of it, a new key for a new action; a random \
                        UUID is a good one."
            .to_owned();
        text += &format!(" The answer is repeated for {}.", in_words(ttl));
        if refuse_late > ttl {
            text += &format!(" A later retry is refused for {} after the first request.", in_words(refuse_late));
        }
        if !required {
            text += " A request without a key runs, but is not safe to retry.";
        }
        text
    }

    fn add_responses(&self, operation: &mut Operation) {
        let mut by_status: BTreeMap<u16, Vec<ErrorKind>> = BTreeMap::new();
        for kind in ALL.into_iter().filter(|kind| self.may_answer(*kind)) {
            by_status.entry(self.status(kind)).or_default().push(kind);
        }
        let responses = &mut operation.responses.responses;
        if self.info.in_flight == InFlight::Accepted {
            responses.entry("202".to_owned()).or_insert_with(|| RefOr::T(accepted()));
        }
        for (status, kinds) in by_status {
            responses.entry(status.to_string()).or_insert_with(|| RefOr::T(self.response(&kinds)));
        }
    }

    /// Whether a call of this operation can be answered with it.
    fn may_answer(&self, kind: ErrorKind) -> bool {
        match kind {
            ErrorKind::MissingKey => matches!(self.info.key, KeyRule::Header { required: true, .. }),
            ErrorKind::Mismatch => {
                self.info.payload != PayloadRule::None || self.info.foreign_scope == ForeignScope::Reject
            }
            ErrorKind::Expired => self.info.refuse_late > self.info.ttl && !self.info.webhook,
            ErrorKind::ResultUnavailable => !self.info.webhook, // acknowledged

            ErrorKind::OrderUnreadable => self.info.order.is_some(),
            ErrorKind::TimedOut => self.info.timeout.is_some(),
            ErrorKind::ReplayForbidden => self.config.authorize_replay.is_some(),
            // Of operators, of a fault of the program, of what is not listed, and of who fetches a result.
            ErrorKind::Unverified | ErrorKind::InvalidEvent => self.info.webhook,
            ErrorKind::InvalidBatch
            | ErrorKind::Conflict
            | ErrorKind::NotServed
            | ErrorKind::Transaction
            | ErrorKind::Step
            | ErrorKind::Released
            | ErrorKind::UnknownOperation => false,
            ErrorKind::InvalidKey
            | ErrorKind::InProgress { .. }
            | ErrorKind::InDoubt
            | ErrorKind::Unavailable { .. }
            | ErrorKind::Draining
            | ErrorKind::Panicked
            | ErrorKind::TooLarge
            | ErrorKind::Unreadable
            | ErrorKind::InvalidLink
            | ErrorKind::Store => true,
        }
    }

    fn status(&self, kind: ErrorKind) -> u16 {
        status(kind, self.config, self.info.webhook).as_u16()
    }

    fn response(&self, kinds: &[ErrorKind]) -> Response {
        let line = |kind: &ErrorKind| {
            let row = row(*kind);
            let runs_again = self.info.in_doubt != InDoubt::Hold;
            let cut_off = matches!(kind, ErrorKind::TimedOut | ErrorKind::Panicked);
            let retry = if runs_again && cut_off { "same-key" } else { row.retry };
            format!("- `{}` (`retry`: `{retry}`): {}", row.slug, row.title)
        };
        let lines: Vec<_> = kinds.iter().map(line).collect();
        let mut response = ResponseBuilder::new().description(lines.join("\n"));
        if self.config.problem_response.is_none() {
            response = response.content("application/problem+json", Content::new(Some(Ref::from_schema_name(SCHEMA))));
        }
        if kinds.iter().any(|kind| retry_after(*kind).is_some()) {
            let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
            let header = HeaderBuilder::new().schema(Some(seconds)).description(Some("When to come back, in seconds."));
            response = response.header("Retry-After", header.build());
        }
        response.build()
    }

    /// The rules, without what only the service's own people look for.
    fn extension(&self) -> Value {
        let mut rules = json!(self.info);
        if let Some(rules) = rules.as_object_mut() {
            rules.remove("kind");
            rules.remove("function");
        }
        rules
    }
}

/// What a duplicate gets where it is told where to fetch the result.
fn accepted() -> Response {
    let header = |of: Type, text: &str| {
        HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(of))).description(Some(text)).build()
    };
    ResponseBuilder::new()
        .description("An earlier request with this key still runs; `Idempotency-Status` is `in-progress`.")
        .header("Location", header(Type::String, "Where its result will be."))
        .header("Retry-After", header(Type::Integer, "When to look there, in seconds."))
        .build()
}

fn is_success(status: &str) -> bool {
    status.starts_with(['2', '3'])
}

fn is_header(parameter: &RefOr<Parameter>, name: &str, components: &Components) -> bool {
    let parameter = match parameter {
        RefOr::T(parameter) => parameter,
        RefOr::Ref(reference) => {
            let shared = reference.ref_location.strip_prefix("#/components/parameters/");
            match shared.and_then(|shared| components.parameters.get(shared)) {
                Some(RefOr::T(parameter)) => parameter,
                _ => return false,
            }
        }
    };
    matches!(parameter.parameter_in, ParameterIn::Header) && parameter.name.eq_ignore_ascii_case(name)
}

fn add_headers(response: &mut Response) {
    let of = |of: Type| ObjectBuilder::new().schema_type(of);
    let status = "`ignored`: the request ran without protection. `unrecorded`: it ran, but a retry will not be answered. \
         `in-progress`, with 202: an earlier request still runs.";
    let headers = [
        ("Idempotent-Replayed", REPLAYED, of(Type::Boolean), "This is the first answer, again."),
        (
            "Idempotency-Status",
            STATUS,
            of(Type::String).enum_values(Some(["ignored", "unrecorded", "in-progress"])),
            status,
        ),
    ];
    for (shown, name, schema, description) in headers {
        if !response.headers.keys().any(|there| name == *there.to_ascii_lowercase()) {
            let header = HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build();
            response.headers.insert(shown.to_owned(), RefOr::T(header));
        }
    }
}

/// As [`Problem`](crate::Problem) is written.
fn problem_schema(base: &str) -> RefOr<Schema> {
    let member = |of: Type, text: &str| ObjectBuilder::new().schema_type(of).description(Some(text));
    let word = |text: &str, words: &[&str]| member(Type::String, text).enum_values(Some(words.to_vec()));
    let mut types: Vec<_> = ALL.iter().map(|kind| format!("{base}{}", row(*kind).slug)).collect();
    types.sort_unstable();
    let link = ObjectBuilder::new()
        .property("provider", member(Type::String, "Whose id it is."))
        .property("id", member(Type::String, "The id."))
        .required("provider")
        .required("id");
    let problem = ObjectBuilder::new()
        .description(Some("Why a request was not run (RFC 9457). Branch on `type`; it may get further values."))
        .property("type", member(Type::String, "What it is.").examples(types))
        .property("title", member(Type::String, "`type` in words."))
        .property("status", member(Type::Integer, "As the status line."))
        .property("detail", member(Type::String, "This problem in words."))
        .property(
            "state",
            word(
                "Where the key stands.",
                &["in_flight", "completed", "expired", "in_doubt", "resumable", "released", "unknown"],
            ),
        )
        .property("op", member(Type::String, "The operation."))
        .property("operation", member(Type::String, "The record, for support.").pattern(Some("^[0-9a-f]{32}$")))
        .property("safe_new_key", member(Type::Boolean, "A new key cannot make it happen twice."))
        .property(
            "retry",
            word(
                "Whether to come back; `operator`: a person must settle it first.",
                &["same-key", "new-key", "never", "operator"],
            ),
        )
        .property("original_status", member(Type::Integer, "Of the first answer, where that cannot be repeated."))
        .property("links", ArrayBuilder::new().items(link).description(Some("What providers call it.")));
    let always = ["type", "title", "status", "detail", "safe_new_key", "retry"];
    let problem = always.into_iter().fold(problem, ObjectBuilder::required);
    problem.into()
}

/// `24 h`, in the largest unit that is whole.
fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(24 * 60 * 60, "d"), (60 * 60, "h"), (60, "min")];
    let whole = units.into_iter().find(|(unit, name)| {
        let least = if *name == "d" { 2 * unit } else { *unit }; // one day is "24 h"
        seconds >= least && seconds.is_multiple_of(*unit)
    });
    match whole {
        Some((unit, name)) => format!("{} {name}", seconds / unit),
        None => format!("{seconds} s"),
    }
}
