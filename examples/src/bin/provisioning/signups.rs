//! The signup, and what it has done.

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use idem_runtime::{Error, Steps, idempotent};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    outside::Outside,
    rows::{self, Accounts},
    tenant::Tenant,
};

#[derive(Debug, Deserialize)]
pub(crate) struct Signup {
    email: String,
    plan: String,
    /// A step that fails in the first run, after its effect.
    #[serde(default)]
    fail_at: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Workspace {
    id: String,
    user: String,
    customer: String,
    plan: String,
}

/// Five steps: three of our own rows, each committed with its step, and two at providers, each with a key of its own. Where it
/// breaks off, the next retry goes on.
#[idempotent(scope = "tenant", op = "sign-up", ttl = "48h")]
pub(crate) async fn sign_up<Db: Accounts>(
    tenant: Tenant,
    State(outside): State<Outside>,
    #[idem] steps: Steps,
    Json(signup): Json<Signup>,
) -> Result<impl IntoResponse, Trouble> {
    if !signup.email.contains('@') {
        return Err(Trouble::Invalid); // before the first step: nothing has happened, and the key is free
    }
    let first_run = steps.execution().attempts() == 1;
    let reply = |step: &str| {
        let lost = first_run && signup.fail_at.as_deref() == Some(step);
        if lost { Err(Trouble::NoReply) } else { Ok(()) }
    };

    let user = steps.transaction("user", async |tx| own_row::<Db>(tx, tenant, "user", &signup.email).await).await?;
    reply("user")?;
    let workspace =
        steps.transaction("workspace", async |tx| own_row::<Db>(tx, tenant, "workspace", &user).await).await?;
    reply("workspace")?;
    steps.transaction("permissions", async |tx| own_row::<Db>(tx, tenant, "permissions", &workspace).await).await?;
    reply("permissions")?;
    let at_a_provider = async |step, key: idem_runtime::StepKey, subject: &str| {
        let id = outside.ask(step, tenant, key.as_str(), subject).await?;
        reply(step)?; // it has happened, but its reply is lost: the retry asks again, with the same key
        Ok::<_, Trouble>(id)
    };
    steps.run("welcome-mail", async |key| at_a_provider("welcome-mail", key, &signup.email).await).await?;
    let customer = steps.run("customer", async |key| at_a_provider("customer", key, &user).await).await?;
    steps.link("billing", &customer).await?;

    let location = [(header::LOCATION, format!("/workspaces/{workspace}"))];
    Ok((StatusCode::CREATED, location, Json(Workspace { id: workspace, user, customer, plan: signup.plan })))
}

async fn own_row<Db: Accounts>(
    tx: &mut idem_runtime::Tx<Db>,
    tenant: Tenant,
    step: &'static str,
    of: &str,
) -> Result<String, Trouble> {
    Ok(rows::insert(tx, tenant, step, of).await?)
}

/// What has happened for the caller: one item per effect.
pub(crate) async fn effects(tenant: Tenant, State(outside): State<Outside>) -> Result<Json<Value>, Trouble> {
    Ok(Json(json!({ "items": outside.effects(tenant).await? })))
}

#[derive(Debug)]
pub(crate) enum Trouble {
    Invalid,
    NoReply,
    Database(sqlx::Error),
    Idempotency(Error),
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let (status, error) = match self {
            Self::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "email needs an @"),
            Self::NoReply => (StatusCode::BAD_GATEWAY, "a service did not reply; send it again with the same key"),
            Self::Database(error) => {
                tracing::error!(%error, "the database failed");
                (StatusCode::INTERNAL_SERVER_ERROR, "the database failed; send it again with the same key")
            }
            Self::Idempotency(error) => return error.into_response(),
        };
        (status, Json(json!({ "error": error }))).into_response()
    }
}
