//! For whoever must settle what nobody knows the outcome of: `payments doubts` and `payments resolve`.

use std::{
    env,
    error::Error,
    io::{read_to_string, stdin},
    time::Duration,
};

use axum::{Json, http::StatusCode};
use idem_examples::over;
use idem_runtime::{Audit, Filter, Page, Record, RecordId, Resolution, Runtime, StoredResponse, state::State};

const USAGE: &str = "usage: payments | payments doubts | payments resolve ID complete|void|release WHY\n\
    (complete: the answer that the client was due, as JSON, is read from the standard input)";

pub(crate) async fn run(url: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let idem = over(url)
        .await?
        .0
        .namespace("payments") // and with the same quarantine as the service
        .serve_only(|_| false) // it does only what it is told
        .sweep_every(Duration::ZERO)
        .purge_every(Duration::ZERO)
        .build()
        .await?;
    match *arguments {
        ["doubts"] => list(&idem).await,
        ["resolve", id, how, why] => resolve(&idem, id.parse()?, how, why).await,
        _ => Err(USAGE.into()),
    }
}

/// A line for each: the record, its operation, for how long nobody has heard of its owner, and why it is in doubt; by what
/// the provider knows it, and what the provider calls it as far as that was recorded.
async fn list(idem: &Runtime) -> Result<(), Box<dyn Error>> {
    let (filter, mut page) = (Filter::default().state(State::InDoubt), Page::default());
    loop {
        let records = idem.list(filter.clone(), page).await?;
        for record in &records {
            println!("{}", line(record));
        }
        match records.last() {
            Some(last) => page = page.after(last.id),
            None => return Ok(()),
        }
    }
}

fn line(record: &Record) -> String {
    let reason = record.reason.map_or_else(|| "?".to_owned(), |reason| format!("{reason:?}"));
    let links: String = record.links.iter().map(|(provider, id)| format!(" {provider}={id}")).collect();
    let (id, op, silent) = (record.id, &record.op, record.silent_for.as_secs());
    format!("{id} {op} {silent}s {reason} {}{links}", record.provider_key())
}

async fn resolve(idem: &Runtime, id: RecordId, how: &str, why: &str) -> Result<(), Box<dyn Error>> {
    let how = match how {
        "complete" => {
            let answer: serde_json::Value = serde_json::from_str(&read_to_string(stdin())?)?;
            Resolution::Complete(StoredResponse::http((StatusCode::CREATED, Json(answer))).await?)
        }
        "void" => Resolution::Void,
        "release" => Resolution::Release,
        _ => return Err(USAGE.into()),
    };
    let record = idem.find_record(id).await?.ok_or("there is no such record")?;
    let who = env::var("USER").unwrap_or_else(|_| "operator".to_owned());
    // Compared with the fence: if anything has happened since, it is refused, and must be looked at again.
    let settled = idem.resolve(id, record.fence, how, Audit { who, why: why.to_owned() }).await;
    println!("{id} is {:?}", settled.map_err(|error| error.to_string())?.state);
    Ok(())
}
