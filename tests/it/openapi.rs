//! What an OpenAPI document says of annotated operations: `#[utoipa::path]` above `#[idempotent]`, on real handlers. To
//! change the files beside it: `UPDATE_EXPECT=1`.

use std::collections::BTreeSet;

use axum::{
    Json, Router,
    extract::Path,
    http::{Method, StatusCode},
    routing::{get, post, put},
};
use expect_test::expect_file;
use idem_runtime::{
    Builder, Execution, MemoryStore, Problem, Runtime, idempotent,
    openapi::{At, Report},
};
use serde_json::{Value, json};
use utoipa::{OpenApi, ToSchema, openapi::OpenApi as Document};

use crate::support::{App, Shop, Tenant, seen};

#[derive(serde::Deserialize, ToSchema)]
struct Order {
    amount: u64,
}

#[utoipa::path(
    post, path = "/orders/{shop}", request_body = Order, params(("shop" = String, Path, description = "The shop.")),
    responses((status = 201, description = "Ordered.", body = String), (status = 404, description = "No such shop."))
)]
#[idempotent(scope = "tenant", op = "openapi.order", ttl = "24h", refuse_late = "7d", timeout = "30s")]
async fn order(
    tenant: Tenant,
    Path(shop): Path<String>,
    #[idem] exec: Execution,
    Json(order): Json<Order>,
) -> (StatusCode, Json<String>) {
    (StatusCode::CREATED, Json(format!("{shop} {} {}", order.amount, exec.attempts())))
}

/// Its author has documented the key, the conflict and the marker in words of his own.
#[utoipa::path(
    post, path = "/refunds", operation_id = "refundOrder",
    params(("idempotency-key" = String, Header, description = "mine")),
    responses(
        (status = 200, description = "Refunded.", headers(("idempotent-replayed" = String, description = "mine"))),
        (status = 409, description = "mine"),
    ),
    extensions(("x-idempotency" = json!("mine")))
)]
#[idempotent(scope = "tenant", op = "openapi.refund", header = "Idempotency-Key")]
async fn refund(tenant: Tenant) -> StatusCode {
    StatusCode::OK
}

#[utoipa::path(get, path = "/reports", responses((status = 200, description = "A report.")))]
#[idempotent(scope = "tenant", op = "openapi.report")]
async fn report(tenant: Tenant) -> StatusCode {
    StatusCode::OK
}

/// Two functions of one name.
mod v1 {
    use super::{StatusCode, Tenant, idempotent};

    #[utoipa::path(put, path = "/v1/profile", responses((status = 204, description = "Kept.")))]
    #[idempotent(scope = "tenant", op = "openapi.profile.v1", optional, key_format = uuid, header = "Request-Id")]
    pub(super) async fn profile(tenant: Tenant) -> StatusCode {
        StatusCode::NO_CONTENT
    }
}
mod v2 {
    use super::{StatusCode, Tenant, idempotent};

    #[utoipa::path(put, path = "/v2/profile", responses((status = 204, description = "Kept.")))]
    #[idempotent(scope = "tenant", op = "openapi.profile.v2", key = tenant.0)]
    pub(super) async fn profile(tenant: Tenant) -> StatusCode {
        StatusCode::NO_CONTENT
    }
}

#[derive(OpenApi)]
#[openapi(paths(order, refund, report, v1::profile, v2::profile))]
struct Api;

fn router() -> Router<App> {
    Router::new()
        .route("/orders/{shop}", post(order))
        .route("/refunds", post(refund))
        .route("/reports", get(report))
        .route("/v1/profile", put(v1::profile))
        .route("/v2/profile", put(v2::profile))
}

async fn runtime(configure: impl FnOnce(Builder) -> Builder) -> Runtime {
    let builder = Runtime::builder(MemoryStore::volatile()).namespace("shop");
    configure(builder.serve_only(|op| op.starts_with("openapi."))).build().await.unwrap()
}

/// Where everything stands.
fn everywhere(runtime: &Runtime, api: &mut Document) -> Report {
    runtime.document_with(api, |info| match info.op {
        "openapi.refund" => At::Id("refundOrder".to_owned()),
        "openapi.profile.v1" => At::Path("/v1/profile".to_owned(), Method::PUT),
        "openapi.profile.v2" => At::Path("/v2/profile".to_owned(), Method::PUT),
        _ => At::Id(info.function.to_owned()),
    })
}

async fn documented(configure: impl FnOnce(Builder) -> Builder) -> Value {
    let mut api = Api::openapi();
    assert!(everywhere(&runtime(configure).await, &mut api).is_complete());
    let document = serde_json::to_value(&api).unwrap();
    assert_valid(&document);
    document
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

/// What OpenAPI asks of a document, as far as additions can break it.
fn assert_valid(document: &Value) {
    let again: Document = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(&serde_json::to_value(again).unwrap(), document, "reads as it was written");
    let mut nodes = vec![document];
    while let Some(node) = nodes.pop() {
        if let Some(pointer) = node.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(pointer.trim_start_matches('#')).is_some(), "{pointer} leads nowhere");
        }
        match node {
            Value::Array(items) => nodes.extend(items),
            Value::Object(members) => nodes.extend(members.values()),
            _ => {}
        }
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in
            item.as_object().unwrap().iter().filter(|(_, member)| member["responses"].is_object())
        {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let names: Vec<_> =
                parameters.iter().map(|p| (p["in"].to_string(), p["name"].to_string().to_lowercase())).collect();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{method} {path}: {names:?}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!((100..600).contains(&status.parse::<u16>().unwrap()));
                assert!(
                    response["description"].is_string() || response["$ref"].is_string(),
                    "{method} {path} {status}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_document_tells_a_client_all_about_an_operation() {
    let document = documented(|builder| builder).await;
    let order = &document["paths"]["/orders/{shop}"]["post"];
    expect_file!["openapi/order.json"].assert_eq(&pretty(order));
    let problem = &document["components"]["schemas"]["IdempotencyProblem"];
    expect_file!["openapi/problem.json"].assert_eq(&pretty(problem));
}

#[tokio::test]
async fn the_documented_handlers_are_what_is_served() {
    let shop = Shop::open_with(router(), |builder| builder.serve_only(|op| op.starts_with("openapi."))).await;
    let order = async || seen(shop.post("/orders/north", "k1").json(&json!({"amount": 7})).send().await.unwrap()).await;
    let (first, retry) = (order().await, order().await);
    assert_eq!((first.status, &*first.body, first.replayed), (201, "\"north 7 1\"", false));
    assert_eq!((retry.status, retry.body, retry.replayed), (201, first.body, true));
    assert!(everywhere(&shop.runtime, &mut Api::openapi()).is_complete());
}

#[tokio::test]
async fn what_its_author_wrote_stays() {
    let mut api = Api::openapi();
    let before = serde_json::to_value(&api).unwrap();
    assert!(everywhere(&runtime(|builder| builder).await, &mut api).is_complete());
    let after = serde_json::to_value(&api).unwrap();
    let (before, after) = (&before["paths"]["/refunds"]["post"], &after["paths"]["/refunds"]["post"]);
    assert_eq!(after["parameters"], before["parameters"], "its key is ours, in another case");
    assert_eq!(after["responses"]["409"], before["responses"]["409"]);
    assert_eq!(after["x-idempotency"], "mine");
    let headers = &after["responses"]["200"]["headers"];
    assert_eq!(headers["idempotent-replayed"]["description"], "mine");
    assert!(headers.get("Idempotent-Replayed").is_none() && headers["Idempotency-Status"].is_object());
    assert!(after["responses"]["503"].is_object(), "what it did not speak of is added");
}

/// A document of another make: shared parts, a parameter of the whole path, a method that has no field of its own.
#[tokio::test]
async fn what_is_shared_is_seen_and_stays() {
    let shared = json!({"$ref": "#/components/responses/Busy"});
    let operation = |id: &str| json!({"operationId": id, "responses": {"200": shared, "409": shared}});
    let key = json!({"name": "IDEMPOTENCY-KEY", "in": "header", "required": true, "schema": {"type": "string"}});
    let mut order = operation("order");
    order["parameters"] = json!([{"$ref": "#/components/parameters/Key"}]);
    let before = json!({
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "1"},
        "paths": {
            "/orders/{shop}": {"post": order},
            "/refunds": {"parameters": [key], "additionalOperations": {"REFUND": operation("refundOrder")}}
        },
        "components": {
            "parameters": {"Key": key},
            "responses": {"Busy": {"description": "Come back."}},
            "schemas": {"IdempotencyProblem": {"type": "object", "description": "mine"}}
        }
    });
    let mut api: Document = serde_json::from_value(before.clone()).unwrap();
    let told = runtime(|builder| builder).await.document_with(&mut api, |info| match info.op {
        "openapi.order" => At::Id("order".to_owned()),
        "openapi.refund" => At::Path("/refunds".to_owned(), Method::from_bytes(b"REFUND").unwrap()),
        _ => At::Nowhere,
    });
    assert_eq!(told.documented, ["openapi.order", "openapi.refund"]);
    let after = serde_json::to_value(&api).unwrap();
    assert_valid(&after);
    assert_eq!(after["components"], before["components"]);
    let (order, refunds) = (&after["paths"]["/orders/{shop}"]["post"], &after["paths"]["/refunds"]);
    let refund = &refunds["additionalOperations"]["REFUND"];
    assert_eq!(order["parameters"], before["paths"]["/orders/{shop}"]["post"]["parameters"]);
    assert_eq!((&refunds["parameters"], refund.get("parameters")), (&json!([key]), None));
    for operation in [order, refund] {
        assert_eq!((&operation["responses"]["200"], &operation["responses"]["409"]), (&shared, &shared));
        assert!(operation["responses"]["422"].is_object() && operation["x-idempotency"].is_object());
    }
}

#[tokio::test]
async fn twice_is_as_once() {
    let runtime = runtime(|builder| builder).await;
    let mut api = Api::openapi();
    let first = everywhere(&runtime, &mut api);
    let once = serde_json::to_value(&api).unwrap();
    assert_eq!(everywhere(&runtime, &mut api), first);
    assert_eq!(serde_json::to_value(&api).unwrap(), once);
}

#[tokio::test]
async fn what_is_not_found_or_not_clear_is_told_and_not_guessed() {
    let runtime = runtime(|builder| builder).await;
    let mut api = Api::openapi();
    let told = runtime.document(&mut api);
    assert_eq!(told.documented, ["openapi.order"]);
    assert_eq!(told.ignored, ["openapi.report"], "keys of a GET are ignored");
    assert_eq!(told.not_found, ["openapi.refund"], "it has another id");
    assert_eq!(told.ambiguous, ["openapi.profile.v1", "openapi.profile.v2"]);
    assert!(!told.is_complete());
    let (before, after) = (serde_json::to_value(Api::openapi()).unwrap(), serde_json::to_value(&api).unwrap());
    for path in ["/refunds", "/reports", "/v1/profile", "/v2/profile"] {
        assert_eq!(after["paths"][path], before["paths"][path], "{path}");
    }

    let told = runtime.document_with(&mut Api::openapi(), |info| match info.op {
        "openapi.profile.v1" | "openapi.profile.v2" => At::Path("/v1/profile".to_owned(), Method::PUT),
        "openapi.order" => At::Path("/orders/{shop}".to_owned(), Method::PATCH),
        _ => At::Nowhere,
    });
    assert_eq!(told.ambiguous, ["openapi.profile.v1", "openapi.profile.v2"], "both cannot be there");
    assert_eq!((told.not_found, told.documented), (vec!["openapi.order"], vec![]), "not by this method");
}

#[tokio::test]
async fn it_says_what_the_annotation_and_the_builder_say() {
    let document = documented(|builder| {
        let builder = builder.mismatch_status(409).problem_base("https://shop.example/errors#").header("X-Key");
        builder.authorize_replay(async |_| true)
    })
    .await;
    let order = &document["paths"]["/orders/{shop}"]["post"];
    let statuses = |operation: &Value| operation["responses"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(statuses(order), ["201", "400", "403", "404", "409", "410", "413", "500", "503", "504"], "no 422");
    assert!(order["responses"]["409"]["description"].as_str().unwrap().contains("`idempotency-key-reused`"));
    assert_eq!(order["parameters"][1]["name"], "X-Key");
    let types = &document["components"]["schemas"]["IdempotencyProblem"]["properties"]["type"]["examples"];
    assert_eq!(types[0], "https://shop.example/errors#idempotency-batch-invalid");

    let v1 = &document["paths"]["/v1/profile"]["put"];
    assert_eq!((&v1["parameters"][0]["name"], &v1["parameters"][0]["required"]), (&json!("Request-Id"), &json!(false)));
    assert_eq!(v1["parameters"][0]["schema"], json!({"type": "string", "format": "uuid"}));
    assert!(!v1["responses"]["400"]["description"].as_str().unwrap().contains("key-missing"), "it is optional");
    let v2 = &document["paths"]["/v2/profile"]["put"];
    assert_eq!(v2.get("parameters"), None, "its key is not in a header");
    assert!(!v2["responses"]["409"]["description"].as_str().unwrap().contains("key-reused"), "any payload is the same");
    assert_eq!(statuses(v2), ["204", "400", "403", "409", "410", "413", "500", "503"]);
    assert!(!v2["responses"]["410"]["description"].as_str().unwrap().contains("expired"), "it never is");
}

#[tokio::test]
async fn of_a_house_s_own_format_only_the_status_is_known() {
    let document = documented(|builder| {
        builder.problem_response(|problem: Problem| {
            let mut response = axum::response::Response::default();
            *response.status_mut() = StatusCode::from_u16(problem.status).unwrap();
            response
        })
    })
    .await;
    let busy = &document["paths"]["/orders/{shop}"]["post"]["responses"]["409"];
    assert!(busy.get("content").is_none() && busy["headers"]["Retry-After"].is_object(), "{busy}");
    assert_eq!(document["components"]["schemas"].get("IdempotencyProblem"), None);
}
