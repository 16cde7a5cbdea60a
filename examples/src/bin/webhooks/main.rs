//! Receives the webhooks of Stripe, GitHub, Twilio, and of whoever follows Standard Webhooks: each event counts once.
//!
//! Read from the environment: `ADDR` (default `127.0.0.1:3000`); `DATABASE_URL` (default `sqlite://webhooks.db`, or
//! `postgres://…`); `DATABASE_POOLER`, as for `payments`; the secrets `STRIPE_SECRET`, `GITHUB_SECRET`, `STANDARD_SECRET` and
//! `TWILIO_TOKEN`, each one or, while they are exchanged, several with commas between (by default those that are written
//! below, for tests); `PUBLIC_URL`, by which Twilio knows this server (default: where it listens).

mod events;

use std::{
    env::{self, VarError},
    error::Error,
};

use axum::{
    Json, Router,
    extract::FromRef,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use idem_examples::{Database, listen, over, serve};
use idem_runtime::{
    Runtime, Tx, idempotent,
    webhook::{GitHub, Parameters, Standard, Stripe, Twilio, Verified},
};
use serde::Deserialize;
use serde_json::json;
use sqlx::{Postgres, Sqlite};

use events::{EventLog, Events};

#[derive(Clone, FromRef)]
struct App {
    idem: Runtime,
    log: EventLog,
    stripe: Stripe,
    github: GitHub,
    standard: Standard,
    twilio: Twilio,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).init();
    let addr = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let url = env::var("DATABASE_URL").unwrap_or_else(|_| "sqlite://webhooks.db".to_owned());
    let listener = listen(&addr).await?;
    let here = listener.local_addr()?;

    let public = env::var("PUBLIC_URL").unwrap_or_else(|_| format!("http://{here}"));
    let (builder, database) = over(&url).await?;
    let idem = builder.namespace("webhooks").build().await?;
    let app = App {
        idem: idem.clone(),
        log: EventLog::connect(&url).await?,
        stripe: Stripe::new(secrets("STRIPE_SECRET", "whsec_test_stripe")?)?,
        github: GitHub::new(secrets("GITHUB_SECRET", "test_github")?)?,
        standard: Standard::new(secrets("STANDARD_SECRET", "whsec_dGVzdF9zdGFuZGFyZA==")?)?,
        twilio: Twilio::new(format!("{public}/webhooks/twilio"), secrets("TWILIO_TOKEN", "test_twilio")?)?,
    };
    let receivers = match database {
        Database::Sqlite => receivers::<Sqlite>(),
        Database::Postgres => receivers::<Postgres>(),
    };
    let router =
        receivers.route("/effects", get(events::effects)).route("/healthz", get(async || "ok")).with_state(app);
    println!("webhooks listens on http://{here}");
    serve(listener, router, idem).await
}

fn secrets(name: &str, default: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let secrets = match env::var(name) {
        Ok(secrets) => secrets,
        Err(VarError::NotPresent) => default.to_owned(),
        Err(error) => return Err(format!("{name}: {error}").into()),
    };
    Ok(secrets.split(',').map(str::to_owned).collect())
}

fn receivers<Db: Events>() -> Router<App>
where
    for<'c> &'c mut Db::Connection: Send,
{
    Router::new()
        .route("/webhooks/stripe", post(stripe::<Db>))
        .route("/webhooks/github", post(github::<Db>))
        .route("/webhooks/standard", post(standard::<Db>))
        .route("/webhooks/twilio", post(twilio::<Db>))
}

/// What this program reads of an event.
#[derive(Deserialize)]
struct Event {
    #[serde(alias = "action", default)]
    r#type: String,
}

/// The row is committed with the event's key, or not at all. Stripe can send an event again for 30 days.
#[idempotent(scope = global, op = "stripe-webhook", key = event.id, ttl = "35d", webhook)]
async fn stripe<Db: Events>(#[idem] mut tx: Tx<Db>, event: Verified<Stripe>) -> Result<StatusCode, Failed> {
    let what: Event = event.json()?;
    Db::insert(&mut tx, "stripe", &event.id, &what.r#type).await?;
    Ok(StatusCode::OK)
}

#[idempotent(scope = global, op = "github-webhook", key = event.id, ttl = "35d", webhook)]
async fn github<Db: Events>(#[idem] mut tx: Tx<Db>, event: Verified<GitHub>) -> Result<StatusCode, Failed> {
    let what: Event = event.json()?;
    Db::insert(&mut tx, "github", &event.id, &what.r#type).await?;
    Ok(StatusCode::OK)
}

#[idempotent(scope = global, op = "standard-webhook", key = event.id, ttl = "35d", webhook)]
async fn standard<Db: Events>(#[idem] mut tx: Tx<Db>, event: Verified<Standard>) -> Result<StatusCode, Failed> {
    let what: Event = event.json()?;
    Db::insert(&mut tx, "standard", &event.id, &what.r#type).await?;
    Ok(StatusCode::OK)
}

#[idempotent(scope = global, op = "twilio-webhook", key = event.id, ttl = "35d", webhook)]
async fn twilio<Db: Events>(#[idem] mut tx: Tx<Db>, event: Verified<Twilio>) -> Result<StatusCode, Failed> {
    let what = match &event.content {
        Parameters::Body(body) => body.json::<Event>()?.r#type,
        form => form.get("MessageStatus").or(form.get("CallStatus")).unwrap_or_default().to_owned(),
    };
    Db::insert(&mut tx, "twilio", &event.id, &what).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Nothing of the event is kept, and the sender delivers it again.
enum Failed {
    /// Not the event that is expected.
    Event(idem_runtime::Error),
    Database(sqlx::Error),
}

impl From<idem_runtime::Error> for Failed {
    fn from(error: idem_runtime::Error) -> Self {
        Self::Event(error)
    }
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        match self {
            Self::Event(error) => error.into_response(),
            Self::Database(error) => {
                tracing::error!(%error, "event database");
                (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "error": "internal error" }))).into_response()
            }
        }
    }
}
