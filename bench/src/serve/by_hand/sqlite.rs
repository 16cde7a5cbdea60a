//! On SQLite, by way of one writer that commits in groups.

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use sqlx::{Sqlite, SqliteConnection, SqlitePool, query, query_as, query_scalar};
use uuid::Uuid;

use crate::serve::{
    charge::{Call, Charges, Failed, Kept, first, replay},
    writer::Writer,
};

#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) writer: Writer,
    pub(crate) readers: SqlitePool,
}

/// As on Postgres.
pub(crate) async fn read(State(files): State<Files>, headers: HeaderMap, body: Bytes) -> Result<Response, Failed> {
    let call = Call::of(&headers, &body)?;
    let kept = query_scalar("select body from answers where id = ?1").bind(&call.key).fetch_one(&files.readers).await?;
    Ok(first(kept))
}

/// One turn of the writer. A retry is answered by a reader.
pub(crate) async fn transaction(
    State(files): State<Files>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failed> {
    let call = Call::of(&headers, &body)?;
    if let Some(kept) = look(&files.readers, &call).await? {
        return replay(&call, kept);
    }
    call.order.pause().await;
    let answer = call.answer()?;
    let (asked, row) = (call.clone(), answer.clone());
    if files.writer.run(move |file| Box::pin(async move { place(file, &asked, &row).await })).await? {
        return Ok(first(answer));
    }
    let kept = look(&files.readers, &call).await?.ok_or(sqlx::Error::RowNotFound)?;
    replay(&call, kept)
}

/// Whether it was there to be claimed.
async fn place(file: &mut SqliteConnection, call: &Call, answer: &[u8]) -> sqlx::Result<bool> {
    let owner = Uuid::new_v4();
    if !claim(file, call, owner).await? {
        return Ok(false);
    }
    Sqlite::insert(file, &call.tenant, &call.order).await?;
    complete(file, call, owner, answer).await
}

/// Three turns of the writer.
pub(crate) async fn lease(State(files): State<Files>, headers: HeaderMap, body: Bytes) -> Result<Response, Failed> {
    let call = Call::of(&headers, &body)?;
    if let Some(kept) = look(&files.readers, &call).await? {
        return replay(&call, kept);
    }
    let (asked, owner) = (call.clone(), Uuid::new_v4());
    if !files.writer.run(move |file| Box::pin(async move { claim(file, &asked, owner).await })).await? {
        let kept = look(&files.readers, &call).await?.ok_or(sqlx::Error::RowNotFound)?;
        return replay(&call, kept);
    }
    call.order.pause().await;
    let asked = call.clone();
    files
        .writer
        .run(move |file| Box::pin(async move { Sqlite::insert(file, &asked.tenant, &asked.order).await }))
        .await?;
    let answer = call.answer()?;
    let (asked, row) = (call.clone(), answer.clone());
    let completed = files.writer.run(move |file| Box::pin(async move { complete(file, &asked, owner, &row).await }));
    if completed.await? { Ok(first(answer)) } else { Err(Failed::Status(StatusCode::CONFLICT)) }
}

async fn look(readers: &SqlitePool, call: &Call) -> sqlx::Result<Option<Kept>> {
    let kept = "select fingerprint, status, body from by_hand_lease where tenant = ?1 and op = 'charge' and key = ?2";
    query_as(kept).bind(&call.tenant).bind(&call.key).fetch_optional(readers).await
}

async fn claim(file: &mut SqliteConnection, call: &Call, owner: Uuid) -> sqlx::Result<bool> {
    let claim = "insert into by_hand_lease (tenant, op, key, fingerprint, owner, lease_until, expires_at)
                 values (?1, 'charge', ?2, ?3, ?4, unixepoch() + 30, unixepoch() + 86400)
                 on conflict (tenant, op, key) do update set owner = excluded.owner, lease_until = excluded.lease_until
                  where status is null and lease_until < unixepoch() and fingerprint = excluded.fingerprint";
    let claim = query(claim).bind(&call.tenant).bind(&call.key).bind(call.fingerprint.as_slice()).bind(owner);
    Ok(claim.execute(file).await?.rows_affected() == 1)
}

/// Whether the lease was still there.
async fn complete(file: &mut SqliteConnection, call: &Call, owner: Uuid, answer: &[u8]) -> sqlx::Result<bool> {
    let complete = "update by_hand_lease set status = 201, body = ?4
                     where tenant = ?1 and op = 'charge' and key = ?2 and owner = ?3 and status is null";
    let complete = query(complete).bind(&call.tenant).bind(&call.key).bind(owner).bind(answer);
    Ok(complete.execute(file).await?.rows_affected() == 1)
}
