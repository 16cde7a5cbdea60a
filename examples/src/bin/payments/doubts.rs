//! For whoever must settle what nobody knows the outcome of: `payments doubts` and `payments resolve`.

use std::{
    env,
    error::Error,
    io::{read_to_string, stdin},
    time::Duration,
};

use axum::{Json, http::StatusCode};
use idem_examples::over;
use idem_runtime::{
    Audit, Fence, Filter, Page, Record, RecordId, Resolution, Runtime, StepDecision, StepDecisions, StoredResponse,
    state::State,
};

const USAGE: &str = "usage: payments | payments doubts | payments resolve ID@FENCE complete|void|release WHY\n\
    | payments resolve ID@FENCE resume WHY [STEP=RESULT|STEP=not-done]..\n\
    (complete: the answer that the client was due, as JSON, is read from the standard input; RESULT is JSON, too)";

pub(crate) async fn run(url: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let idem = over(url)
        .await?
        .0
        .namespace("payments") // and with the same quarantine and provider window as the service
        .serve_only(|_| false) // it does only what it is told
        .sweep_every(Duration::ZERO)
        .purge_every(Duration::ZERO)
        .build()
        .await?;
    match *arguments {
        ["doubts"] => list(&idem).await,
        ["resolve", id, how, why, ref steps @ ..] => resolve(&idem, id, decision(how, steps).await?, why).await,
        _ => Err(USAGE.into()),
    }
}

/// What is in doubt, and what waits for its client to come back: a process that was lost in the middle of a step is known
/// by that only.
async fn list(idem: &Runtime) -> Result<(), Box<dyn Error>> {
    for state in [State::InDoubt, State::Resumable] {
        let (filter, mut page) = (Filter::default().state(state), Page::default());
        loop {
            let records = idem.list(filter.clone(), page).await?;
            for record in &records {
                println!("{}", line(record));
                for step in idem.steps(record.id).await?.iter().filter(|step| step.result.is_none()) {
                    println!("  {} has no result; its provider knows it as {}", step.name, record.step_key(&step.name));
                }
            }
            match records.last() {
                Some(last) => page = page.after(last.id),
                None => break,
            }
        }
    }
    Ok(())
}

/// The record and its fence as it was seen, its operation, for how long nobody has heard of its owner, and why it is in doubt; by what the provider knows
/// it (where there are no steps), and what the provider calls it as far as that was recorded.
fn line(record: &Record) -> String {
    let reason = record.reason.map_or_else(|| "?".to_owned(), |reason| format!("{reason:?}"));
    let links: String = record.links.iter().map(|(provider, id)| format!(" {provider}={id}")).collect();
    let (id, fence, op, silent) = (record.id, record.fence, &record.op, record.silent_for.as_secs());
    format!("{id}@{fence} {op} {silent}s {reason} {}{links}", record.provider_key())
}

async fn decision(how: &str, steps: &[&str]) -> Result<Resolution, Box<dyn Error>> {
    Ok(match (how, steps) {
        ("complete", []) => {
            let answer: serde_json::Value = serde_json::from_str(&read_to_string(stdin())?)?;
            Resolution::Complete(StoredResponse::http((StatusCode::CREATED, Json(answer))).await?)
        }
        ("void", []) => Resolution::Void,
        ("release", []) => Resolution::Release,
        ("resume", []) => Resolution::Resume,
        ("resume", steps) => {
            let mut decided = StepDecisions::new();
            for step in steps {
                let (name, result) = step.split_once('=').ok_or(USAGE)?;
                let decision = match result {
                    "not-done" => StepDecision::NotDone,
                    result => StepDecision::done(&serde_json::from_str::<serde_json::Value>(result)?)?,
                };
                decided = decided.step(name, decision);
            }
            Resolution::ResumeWith(decided)
        }
        _ => return Err(USAGE.into()),
    })
}

/// `seen`: as `payments doubts` has shown it. If anything has happened since, it is refused, and must be looked at again.
async fn resolve(idem: &Runtime, seen: &str, how: Resolution, why: &str) -> Result<(), Box<dyn Error>> {
    let (id, fence) = seen.split_once('@').ok_or(USAGE)?;
    let (id, fence): (RecordId, Fence) = (id.parse()?, Fence(fence.parse()?));
    let who = env::var("USER").unwrap_or_else(|_| "operator".to_owned());
    let settled = idem.resolve(id, fence, how, Audit { who, why: why.to_owned() }).await;
    println!("{id} is {:?}", settled.map_err(|error| error.to_string())?.state);
    Ok(())
}
