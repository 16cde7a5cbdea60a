//! The pages that a donor sees. Nothing in them was written by anybody else, so nothing needs to be escaped.

use axum::{
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use idem_runtime::Problem;
use uuid::Uuid;

use super::Donation;

pub(super) fn form() -> Response {
    page(StatusCode::OK, "Donate", &fresh_form())
}

pub(super) fn thanks(donation: &Donation) -> Response {
    let (whole, cents) = (donation.amount / 100, donation.amount % 100);
    let told = format!(
        "<p>You gave {whole}.{cents:02} {}. Its number is {}.</p><p><a href=\"/donate\">Give once more</a></p>",
        donation.currency, donation.id
    );
    page(StatusCode::OK, "Thank you", &told)
}

pub(super) fn invalid() -> Response {
    let told = format!("<p>The amount must be at least one cent. Nothing was given.</p>{}", fresh_form());
    page(StatusCode::UNPROCESSABLE_ENTITY, "That is no amount", &told)
}

pub(super) fn unknown() -> Response {
    page(StatusCode::NOT_FOUND, "There is no such donation", "<p><a href=\"/donate\">Donate</a></p>")
}

pub(super) fn failed() -> Response {
    page(StatusCode::INTERNAL_SERVER_ERROR, "That did not work", SAME_FORM)
}

/// What a donor reads in the place of a problem; other operations' clients are programs and get it as it is.
pub(crate) fn problem(problem: Problem) -> Response {
    if problem.op != Some("donate") {
        return problem.into_response();
    }
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match (problem.type_uri.rsplit('#').next(), problem.retry) {
        (Some("idempotency-key-reused"), _) => {
            let told = "<p>You have sent this form before, with another amount. That one counts; what you have sent now \
                        was not given.</p><p>Here is a new form. What you give by it comes on top.</p>";
            page(status, "This form was sent before", &format!("{told}{}", fresh_form()))
        }
        (_, "same-key") => page(status, "That takes longer than it should", SAME_FORM),
        _ if status == StatusCode::GONE => {
            let told =
                "<p>It was sent before, and is not taken twice.</p><p>What you give by this new one comes on top.</p>";
            page(status, "This form is used up", &format!("{told}{}", fresh_form()))
        }
        // Without a form: it could be given twice.
        _ => page(
            status,
            "That did not work",
            "<p>It is not known whether you gave. Please ask us before you give again.</p>",
        ),
    }
}

/// Another form could give twice.
const SAME_FORM: &str =
    "<p>Load this page again to send the same form once more. However often you do, you give once.</p>";

/// With a key of its own. `autocomplete`: Firefox fills a page that is loaded anew with what the last one held, hidden
/// fields included.
fn fresh_form() -> String {
    format!(
        "<form method=\"post\" action=\"/donations\">\
         <input type=\"hidden\" name=\"key\" value=\"{}\" autocomplete=\"off\">\
         <label>Cents <input type=\"number\" name=\"amount\" value=\"500\" min=\"1\" required></label> \
         <button>Give</button></form>",
        Uuid::new_v4()
    )
}

/// `private, no-cache`: no proxy gives one page's key to two people, and whoever comes again gets another key; but the
/// browser's back button shows the page that was there, with the key that it had. With `no-store` it may fetch another.
fn page(status: StatusCode, title: &str, content: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1>{content}</html>\n"
    );
    (status, [(header::CACHE_CONTROL, "private, no-cache")], Html(html)).into_response()
}
