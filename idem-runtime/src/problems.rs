//! What each problem means, and what a client does about it.
//!
//! Every refusal is an `application/problem+json` body (RFC 9457) whose `type` ends in one of the slugs below. Branch
//! on the slug, never on `title` or `detail`. The other members: `status`; `state` (where the key stands); `op` (the
//! operation); `operation` (the record, for support); `safe_new_key` (true: a new
//! key cannot make it happen twice); `retry` (`same-key`, `new-key`, `never`, or `operator`: a person must settle it first). `Retry-After` is in
//! whole seconds. Responses that are no problems may say `Idempotent-Replayed: true` (the first answer, again) or
//! `Idempotency-Status: ignored` (the request ran unprotected), `unrecorded` (it ran, but a retry will not be
//! answered) or `in-progress` (202: the first request still runs, and `Location` says where to fetch its result; come
//! back after `Retry-After`).
//!
//! How to call a service so that few of them come up: [`consumers`](crate::consumers).
//!
//! An operation that receives webhooks (the word `webhook`) sends 503 with `Retry-After` wherever a status below is 409, and
//! acknowledges with an empty 200 where it is 410.
//!
//! # Before anything has run
//!
//! ## idempotency-key-missing
//! 400, `new-key`. The operation needs a key. Make one per action (a random UUID) and send it on every retry of that
//! action.
//!
//! ## idempotency-key-invalid
//! 400, `new-key`. The key is empty, longer than 255 characters, repeated, or has characters beyond visible ASCII; or
//! it is a word like `undefined` that a program sends when it has lost its key.
//!
//! ## idempotency-request-too-large
//! 413, `never`. The body is longer than the service takes.
//!
//! ## idempotency-request-unreadable
//! 400, `same-key`. The body broke off or took too long. Send all of it again.
//!
//! ## idempotency-signature-invalid
//! 401, `never`. Of webhooks: the signature is missing, wrong, or its time stamp is out of date. The body is compared byte for
//! byte: a proxy that reformats it breaks the signature.
//!
//! ## idempotency-event-invalid
//! 400, `never`. Of webhooks: the event has no id, or is not in the form that is expected.
//!
//! ## idempotency-order-unreadable
//! 422, `never`. Of events that are applied in order: the body does not say which object it is about, or where it stands among
//! that object's events. Nothing was run, and the key is as it was.
//!
//! ## idempotency-store-unavailable
//! 503 with `Retry-After`, `same-key`. The service cannot look the key up. This request was not run; whether an earlier
//! one with the same key was, the retry will be told.
//!
//! ## idempotency-draining
//! 503 with `Retry-After`, `same-key`. The service is shutting down; another instance will answer.
//!
//! # The key is known
//!
//! ## idempotency-key-reused
//! 422 (or 409 or 400, as the service chooses), `never`. The key belongs to a request with another payload. A retry
//! sends the first payload; a new action takes a new key.
//!
//! ## idempotency-in-progress
//! 409 with `Retry-After`, `same-key`. The first request still runs.
//!
//! ## idempotency-outcome-unknown
//! 409, `operator`. The first request broke off where it may already have taken effect. It is not run again by
//! itself. Do not use a new key: it could happen twice. Where the service finds out by itself what became of it, `retry` is
//! `same-key`, and `Retry-After` says when it is worth coming back; so it is of the other problems that are as this one.
//! Where `state` is `resumable`, `retry` is `same-key` too: the next retry runs it again, and what was done is not done twice.
//!
//! ## idempotency-result-unavailable
//! 410, `never`. The operation is settled, but its answer cannot be sent again: it was too large or a stream to
//! store, or an operator voided the operation. `original_status` and `links` say what is known.
//!
//! ## idempotency-result-expired
//! 410, `never`. The answer's time is over, and the retry comes too late to be run.
//!
//! ## idempotency-operation-released
//! 409, `same-key`. Where an operation's result is fetched: it ended without an effect, and its answer is not kept. The
//! same request with the same key runs again.
//!
//! ## idempotency-operation-unknown
//! 404, `never`. Where an operation's result is fetched: the caller has no such operation.
//!
//! ## idempotency-replay-forbidden
//! 403, `never`. The caller may no longer see the stored answer.
//!
//! # The first request itself broke off
//!
//! ## idempotency-body-timeout
//! 504, `operator`. The operation ran into its time limit; as outcome-unknown. Where it ran in a transaction, `state` is
//! `released` and `retry` is `same-key`: it was undone. Where it is run again by the retry, `state` is `resumable`.
//!
//! ## idempotency-body-panicked
//! 500, `operator`. The operation failed half-way; as outcome-unknown, or undone or to be run again as after a time-out.
//!
//! # Faults of the service
//!
//! ## idempotency-link-invalid
//! 500, `operator`. The operation ran, but a provider's id for it cannot be recorded; as outcome-unknown.
//!
//! ## idempotency-batch-invalid
//! 500, `never`. Only for a program's own consumers of messages: `claim_many` was asked for what it cannot claim.
//!
//! ## idempotency-conflict
//! 409, `never`. Only for operators: a record was not in the state in which it was seen.
//!
//! ## idempotency-transaction-failed
//! 500, `operator`. The operation's transaction could not be opened or committed, for a fault of the program, and part of it
//! may be kept. Where it was surely undone, `state` is `released` and `retry` is `same-key`.
//!
//! ## idempotency-step-failed
//! 500, `same-key`. A recorded step of the operation could not be run or recorded, for a fault of the program; its retry continues
//! it, once the program is mended.
//!
//! ## idempotency-not-served
//! 500, `never`. The operation is mounted in a program whose runtime was told to leave it out.
//!
//! ## idempotency-store-unreadable
//! 500, `operator`. The stored record is damaged.
