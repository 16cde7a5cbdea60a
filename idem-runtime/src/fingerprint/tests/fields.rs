//! `payload = fields(..)`.

use super::*;

#[test]
fn case_99_fields_count_and_the_rest_does_not() {
    let amount = |body: &str| fields(&["/amount", "/customer/id"], body);
    let first = amount(r#"{"amount":10,"customer":{"id":"c","name":"x"},"metadata":1}"#);
    same(first, amount(r#"{"metadata":[2],"customer":{"name":"y","id":"\u0063"}, "amount" : 10}"#));
    differ(first, amount(r#"{"amount":1000,"customer":{"id":"c"}}"#));
    differ(first, amount(r#"{"amount":10.0,"customer":{"id":"c"}}"#));
    differ(first, amount(r#"{"amount":10,"customer":{"id":"d"}}"#));
    differ(first, fields(&["/customer/id", "/amount"], r#"{"amount":10,"customer":{"id":"c"}}"#));
}

#[test]
fn a_missing_field_is_a_value_of_its_own() {
    all_differ(&["{}", r#"{"a":null}"#, r#"{"a":""}"#, r#"{"a":[]}"#, r#"{"a":{}}"#].map(|body| fields(&["/a"], body)));
    same(fields(&["/a"], "{}"), fields(&["/a"], r#"{"b":1}"#));
    differ(fields(&["/a", "/b"], r#"{"a":1}"#), fields(&["/a", "/b"], r#"{"b":1}"#));
}

#[test]
fn fields_count_the_path_but_neither_query_nor_media_type() {
    let of = |path: &[&str], query, media_type| {
        let material = Material { path, query, ..material(media_type, br#"{"a":1}"#) };
        fingerprint(PayloadRule::Fields(&["/a"]), &material)
    };
    same(of(&["1"], "", JSON), of(&["1"], "utm=x", "text/plain"));
    differ(of(&["1"], "", JSON), of(&["2"], "", JSON));
}

#[test]
fn pointers_are_rfc_6901() {
    let body =
        r#"{"a/b":"slash","m~n":"tilde","~1":"order","":"empty","l":["zero","one"],"o":{"0":"name"},"é":"accent"}"#;
    let names = |pointer: &'static str, value: &str| {
        let pointers: &'static [&'static str] = Box::leak(Box::new([pointer]));
        same(fields(pointers, body), fields(&[""], value));
    };
    names("/a~1b", "\"slash\"");
    names("/m~0n", "\"tilde\"");
    names("/~01", "\"order\"");
    names("/", "\"empty\"");
    names("/l/0", "\"zero\"");
    names("/l/1", "\"one\"");
    names("/o/0", "\"name\"");
    names("/é", "\"accent\"");
    names("", body);
    let missing = fields(&["/missing"], body);
    for pointers in [
        &["/l/2"],
        &["/l/-"],
        &["/l/00"],
        &["/l/01"],
        &["/l/+1"],
        &["/l/"],
        &["/l/99999999999999999999999"],
        &["/l/0/0"],
        &["/o/name"],
        &["a/b"],
        &["l"],
        &["/a/b"],
        &["/o/0/"],
    ] {
        same(fields(pointers, body), missing);
    }
}

#[test]
fn fields_of_what_is_no_json_or_ambiguous_count_whole_and_raw() {
    let not_canonical = ["", "a=1", "{\"a\":1", r#"{"a":1,"a":1}"#, r#"{"a":1,"x":[{"b":1,"b":1}]}"#];
    for body in not_canonical {
        same(fields(&["/a"], body), fields(&["/a"], body));
        differ(fields(&["/a"], body), fields(&["/a"], format!("{body} ")));
    }
    all_differ(&not_canonical.map(|body| fields(&["/a"], body)));
    differ(fields(&["/a"], ""), fields(&["/a"], "{}"));
}
