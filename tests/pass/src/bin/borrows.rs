//! Functions that borrow: elided and named lifetimes, `impl Trait` arguments, raw identifiers, out parameters.
#![deny(warnings)]

mod support;

use idem_runtime::{Error, Runtime, idempotent};

struct Ctx<'a> {
    idem: &'a Runtime,
    names: &'a [&'a str],
}

#[idempotent(function, runtime = ctx.idem, scope = ctx.names[0], op = "elided", key = id)]
async fn elided(ctx: &Ctx<'_>, id: &str, out: &mut Vec<String>) -> Result<usize, Error> {
    out.push(id.to_owned());
    Ok(out.len() + ctx.names.len())
}

#[idempotent(function, runtime = idem, scope = r#type, op = "named", key = r#async)]
async fn r#fn<'a, 'b: 'a, const N: usize>(
    idem: &'a Runtime,
    r#type: &'b str,
    r#async: [u8; N],
    text: impl AsRef<str> + 'a,
) -> Result<String, Error> {
    let _ = idem;
    Ok(format!("{type} {} {}", r#async.len(), text.as_ref()))
}

#[derive(Debug)]
struct JobError<'a>(#[allow(dead_code)] &'a str);

impl From<Error> for JobError<'_> {
    fn from(_: Error) -> Self {
        JobError("not run")
    }
}

#[idempotent(function, runtime = *idem, scope = global, op = "borrowed-error", key = id)]
async fn borrowed_error<'a>(idem: &Runtime, id: u64, why: &'a str) -> Result<u64, JobError<'a>> {
    let _ = idem;
    if id == 0 { Err(JobError(why)) } else { Ok(id) }
}

#[idempotent(function, runtime = *idem, scope = global, op = "boxed-error", key = id)]
async fn boxed_error(idem: &Runtime, id: u64) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
    let _ = idem;
    if id == 0 { Err("zero".into()) } else { Ok(id) }
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = support::runtime().await;
    let mut out = Vec::new();
    let ctx = Ctx { idem: &idem, names: &["acme"] };
    assert_eq!(is_send(elided(&ctx, "a", &mut out)).await.unwrap(), 2);
    assert_eq!(is_send(r#fn(&idem, "t", [1, 2], "x")).await.unwrap(), "t 2 x");
    assert_eq!(is_send(borrowed_error(&idem, 0, "no")).await.unwrap_err().0, "no");
    assert_eq!(is_send(boxed_error(&idem, 7)).await.unwrap(), 7);
    assert_eq!(out, ["a"]);
}
