//! On Postgres.

use axum::{body::Bytes, extract::State, http::HeaderMap, response::Response};
use sqlx::{PgPool, Postgres, query, query_as, query_scalar};
use uuid::Uuid;

use crate::serve::charge::{Call, Charges, Failed, Kept, first, replay};

/// A body of 300 bytes by its primary key: what a replay cannot do without.
pub(crate) async fn read(State(pool): State<PgPool>, headers: HeaderMap, body: Bytes) -> Result<Response, Failed> {
    let call = Call::of(&headers, &body)?;
    let kept = query_scalar("select body from answers where id = $1").bind(&call.key).fetch_one(&pool).await?;
    Ok(first(kept))
}

/// Five round trips, one commit. A duplicate waits at the primary key, with its connection, until the first has committed.
pub(crate) async fn transaction(
    State(pool): State<PgPool>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failed> {
    let call = Call::of(&headers, &body)?;
    let mut transaction = pool.begin().await?;
    let claim = "insert into by_hand_transaction (tenant, op, key, fingerprint, expires_at)
                 values ($1, 'charge', $2, $3, now() + interval '24 hours') on conflict (tenant, op, key) do nothing";
    let claim = query(claim).bind(&call.tenant).bind(&call.key).bind(call.fingerprint);
    if claim.execute(&mut *transaction).await?.rows_affected() == 0 {
        let kept = "select fingerprint, status, body from by_hand_transaction
                     where tenant = $1 and op = 'charge' and key = $2";
        let kept: Kept = query_as(kept).bind(&call.tenant).bind(&call.key).fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        return replay(&call, kept);
    }
    call.order.pause().await;
    Postgres::insert(&mut transaction, &call.tenant, &call.order).await?;
    let answer = call.answer()?;
    let complete = "update by_hand_transaction set status = 201, body = $3
                     where tenant = $1 and op = 'charge' and key = $2";
    query(complete).bind(&call.tenant).bind(&call.key).bind(&answer).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(first(answer))
}

/// Three round trips, each committed.
pub(crate) async fn lease(State(pool): State<PgPool>, headers: HeaderMap, body: Bytes) -> Result<Response, Failed> {
    let call = Call::of(&headers, &body)?;
    let owner = match claim(&pool, &call).await? {
        Claimed::Mine(owner) => owner,
        Claimed::Found(kept) => return replay(&call, kept),
    };
    call.order.pause().await;
    Postgres::insert(&mut *pool.acquire().await?, &call.tenant, &call.order).await?;
    complete(&pool, &call, owner).await
}

/// Five, each committed: the claim, three steps and the completion.
pub(crate) async fn steps(State(pool): State<PgPool>, headers: HeaderMap, body: Bytes) -> Result<Response, Failed> {
    let call = Call::of(&headers, &body)?;
    let owner = match claim(&pool, &call).await? {
        Claimed::Mine(owner) => owner,
        Claimed::Found(kept) => return replay(&call, kept),
    };
    for step in ["reserve", "charge", "notify"] {
        let result = format!("\"{step}-{}\"", call.order.reference);
        query("insert into by_hand_step (tenant, op, key, step, result) values ($1, 'charge', $2, $3, $4)")
            .bind(&call.tenant)
            .bind(&call.key)
            .bind(step)
            .bind(result)
            .execute(&pool)
            .await?;
    }
    complete(&pool, &call, owner).await
}

enum Claimed {
    Mine(Uuid),
    Found(Kept),
}

/// Fingerprint, status and body as they are kept; whether it is ours, and whether another's lease is over.
type Found = (Vec<u8>, Option<i32>, Option<Vec<u8>>, bool, bool);

/// One statement that claims or finds; it writes nothing where there is something. A second one takes a lease that is over.
async fn claim(pool: &PgPool, call: &Call) -> Result<Claimed, Failed> {
    let claim = "with mine as (
                   insert into by_hand_lease (tenant, op, key, fingerprint, owner, lease_until, expires_at)
                   values ($1, 'charge', $2, $3, $4, now() + interval '30 seconds', now() + interval '24 hours')
                   on conflict (tenant, op, key) do nothing returning fingerprint)
                 select fingerprint, null::int4 as status, null::bytea as body, true as mine, false as over from mine
                 union all
                 select fingerprint, status, body, false, status is null and lease_until < now() from by_hand_lease
                  where tenant = $1 and op = 'charge' and key = $2";
    let owner = Uuid::new_v4();
    let found: Option<Found> = query_as(claim)
        .bind(&call.tenant)
        .bind(&call.key)
        .bind(call.fingerprint)
        .bind(owner)
        .fetch_optional(pool)
        .await?;
    match found {
        Some((_, _, _, true, _)) => Ok(Claimed::Mine(owner)),
        Some((fingerprint, None, None, false, true)) if fingerprint == call.fingerprint => {
            let take = "update by_hand_lease set owner = $3, lease_until = now() + interval '30 seconds'
                         where tenant = $1 and op = 'charge' and key = $2 and status is null and lease_until < now()";
            let take = query(take).bind(&call.tenant).bind(&call.key).bind(owner).execute(pool).await?;
            let mine = take.rows_affected() == 1;
            Ok(if mine { Claimed::Mine(owner) } else { Claimed::Found((fingerprint, None, None)) })
        }
        Some((fingerprint, status, body, false, _)) => Ok(Claimed::Found((fingerprint, status, body))),
        None => Ok(Claimed::Found((call.fingerprint.to_vec(), None, None))), // somebody's, who was not there yet at our snapshot
    }
}

async fn complete(pool: &PgPool, call: &Call, owner: Uuid) -> Result<Response, Failed> {
    let answer = call.answer()?;
    let complete = "update by_hand_lease set status = 201, body = $4
                     where tenant = $1 and op = 'charge' and key = $2 and owner = $3 and status is null";
    let complete = query(complete).bind(&call.tenant).bind(&call.key).bind(owner).bind(&answer).execute(pool).await?;
    if complete.rows_affected() == 0 {
        return Err(Failed::Status(axum::http::StatusCode::CONFLICT)); // the lease was lost
    }
    Ok(first(answer))
}
