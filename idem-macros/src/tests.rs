//! What the attribute expands to. To change the snapshots: `UPDATE_EXPECT=1 cargo test -p idem-macros`.

use expect_test::{Expect, expect};
use proc_macro2::{TokenStream, TokenTree};

use crate::annotate;

mod arguments;
mod function;
mod handler;

fn expand(attr: &str, item: &str) -> TokenStream {
    annotate(attr.parse().unwrap(), item.parse().unwrap())
}

/// In the snapshots, `__p` stands for the runtime's private module.
fn check(attr: &str, item: &str, expected: &Expect) {
    let short = expand(attr, item).to_string().replace(":: idem_runtime :: private", "__p");
    expected.assert_eq(&prettyplease::unparse(&syn::parse_str(&short).unwrap()));
}

/// Every identifier and literal in `tokens`, as text.
fn words(tokens: TokenStream) -> Vec<String> {
    let words_of = |token| match token {
        TokenTree::Group(group) => words(group.stream()),
        TokenTree::Punct(_) => Vec::new(),
        word => vec![word.to_string()],
    };
    tokens.into_iter().flat_map(words_of).collect()
}

#[test]
fn after_an_error_the_item_stays_without_our_attribute() {
    check(
        r#"scope = "tennant", ttl = "24hours""#,
        "async fn charge(tenant: Tenant, #[idem] exec: Execution) -> String { body() }",
        &expect![[r##"
            #[allow(unreachable_code, unused_mut, unused_variables, clippy::all)]
            async fn charge(tenant: Tenant) -> String {
                let exec: Execution = loop {};
                body()
            }
            ::core::compile_error! {
                "invalid `ttl`: unknown unit `hours`, expected an integer followed by `s`, `m`, `h` or `d`, as in `ttl = \"24h\"`"
            }
            ::core::compile_error! {
                "`scope` must name a parameter of `charge`, found `tennant`\nhelp: `charge` takes `tenant`"
            }
            ::core::compile_error! {
                "missing `op`, the stable name of the operation that `charge` performs\nhelp: write `#[idempotent(op = \"charge\", ..)]`"
            }
        "##]],
    );
}

#[test]
fn another_runtime_path_leaves_no_trace_of_the_usual_one() {
    let item = "async fn a(t: T, #[idem] e: Execution, Json(b): Json<B>) -> String { body() }";
    let handler = r#"op = "a", scope = t, key = b.id, state = S, in_flight = reject, crate = ::other::path"#;
    let function = r#"function, runtime = t.idem, op = "a", scope = t, key = b.id, crate = crate::path"#;
    for attr in [handler, function] {
        let words = words(expand(attr, item));
        assert!(!words.iter().any(|word| word == "idem_runtime" || word == "compile_error"), "{attr}: {words:?}");
    }
}

#[test]
fn case_67_the_body_appears_exactly_once() {
    let item = r#"async fn a(t: T, b: B) -> Result<String, E> { static N: u8 = 1; "marker" }"#;
    for attr in [r#"op = "a", scope = t"#, r#"function, op = "a", scope = t, key = b, runtime = t.idem"#] {
        let markers = words(expand(attr, item)).iter().filter(|word| *word == "\"marker\"").count();
        assert_eq!(markers, 1, "{attr}");
    }
}

#[test]
fn a_body_that_does_not_parse_still_expands() {
    // What an editor sees while somebody types: it needs the signature and the names to complete the rest.
    for body in ["let x = ;", "app.", "match req { Some }", "if let = 3 4 5"] {
        let item = format!("async fn a(t: T, b: B) -> String {{ {body} }}");
        for attr in [r#"op = "a", scope = t"#, r#"function, op = "a", scope = t, key = b, runtime = t.idem"#] {
            let words = words(expand(attr, &item));
            assert!(!words.iter().any(|word| word == "compile_error"), "{body}");
            assert!(words.iter().any(|word| word == "OPERATION"), "{body}");
        }
    }
}

#[test]
fn after_an_error_an_unfinished_body_stays_as_it_is() {
    let item = "async fn a(t: T) -> String { let x = ; }";
    let words = words(expand("scope = t", item));
    assert!(words.iter().any(|word| word == "x") && words.iter().any(|word| word == "compile_error"));
}
