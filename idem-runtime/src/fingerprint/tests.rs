mod fields;
mod generated;
mod golden;
mod plain;
mod scoped;

use super::*;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

fn material<'a>(media_type: &'a str, body: &'a [u8]) -> Material<'a> {
    Material { path: &[], query: "", media_type, body: Content::Bytes(body) }
}

fn whole(media_type: &str, body: impl AsRef<[u8]>) -> Fingerprint {
    fingerprint(PayloadRule::Whole, &material(media_type, body.as_ref()))
}

fn json(body: impl AsRef<[u8]>) -> Fingerprint {
    whole(JSON, body)
}

fn form(body: &str) -> Fingerprint {
    whole(FORM, body)
}

fn at(path: &[&str], query: &str) -> Fingerprint {
    fingerprint(PayloadRule::Whole, &Material { path, query, ..material(JSON, b"{}") })
}

fn fields(pointers: &'static [&'static str], body: impl AsRef<[u8]>) -> Fingerprint {
    fingerprint(PayloadRule::Fields(pointers), &material(JSON, body.as_ref()))
}

fn parts(parts: &[Part]) -> Fingerprint {
    let body = Content::Parts(parts);
    fingerprint(PayloadRule::Whole, &Material { body, ..material("multipart/form-data; boundary=x", b"") })
}

fn part(content: &str) -> Part {
    let digest = Sha256::digest(content).into();
    Part { name: Some("file".into()), filename: Some("a.txt".into()), content_type: Some("text/plain".into()), digest }
}

#[track_caller]
fn same(a: Fingerprint, b: Fingerprint) {
    assert!(a.matches(&b) && b.matches(&a), "{a:?} is not {b:?}");
}

#[track_caller]
fn differ(a: Fingerprint, b: Fingerprint) {
    assert!(!a.matches(&b) && !b.matches(&a), "both are {a:?}");
}

#[track_caller]
fn all_differ(fingerprints: &[Fingerprint]) {
    for (at, a) in fingerprints.iter().enumerate() {
        for b in &fingerprints[at + 1..] {
            differ(*a, *b);
        }
    }
}

#[test]
fn scenario_06_members_reordered_and_white_space() {
    same(json(r#"{"amount":10,"currency":"EUR"}"#), json("{ \"currency\" : \"EUR\",\n\t\"amount\" : 10 }\r\n"));
}

#[test]
fn case_31_member_order_and_white_space_do_not_matter() {
    let first = json(r#"{"a":1,"b":{"x":1,"y":2}}"#);
    same(first, json(r#"{ "b":{"y":2,"x":1}, "a":1 }"#));
    differ(first, json(r#"{"a":"1","b":{"x":1,"y":2}}"#));
    differ(first, json(r#"{"a":1,"b":{"x":2,"y":1}}"#));
    differ(json("[1,2]"), json("[2,1]"));
    differ(json(r#"{"a":null}"#), json("{}"));
}

#[test]
fn case_31_numbers_are_their_text() {
    all_differ(&["10", "10.0", "1e1", "1E1", "1e+1", "1e400", "-10", "0", "-0"].map(json));
}

#[test]
fn scenario_07_numbers_beyond_double_precision_differ() {
    let amount = |n: &str| json(format!("{{\"amount\":{n}}}"));
    differ(amount("9007199254740993"), amount("9007199254740992"));
    differ(amount("0.1"), amount("0.1000000000000000055511151231257827"));
}

#[test]
fn strings_are_compared_decoded() {
    same(json(r#"{"\u0041":"\u00e9\n\/\ud83d\ude00"}"#), json("{\"A\":\"é\\n/😀\"}"));
    differ(json(r#""\\n""#), json(r#""\n""#));
    differ(json(r#""A""#), json(r#""a""#));
}

#[test]
fn members_are_sorted_by_decoded_name() {
    same(json(r#"{"\u007a":1,"b":2}"#), json(r#"{"b":2,"z":1}"#));
}

#[test]
fn shapes_of_json_do_not_run_into_each_other() {
    let shapes = [
        "null",
        "\"null\"",
        "true",
        "false",
        "1",
        "\"1\"",
        "\"\"",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "[1]",
        "[[1]]",
        "[1,1]",
        "[[1],1]",
        "[[1,1]]",
        "[1,[1]]",
        r#"{"1":1}"#,
        r#"["1",1]"#,
        r#"{"":{}}"#,
        r#"{"":[]}"#,
        r#"{"a":{"b":1}}"#,
        r#"{"a":{},"b":1}"#,
        r#"{"ab":1}"#,
        r#"{"a":"b1"}"#,
        r#"{"a":1,"b":2}"#,
        r#"{"a":2,"b":1}"#,
    ];
    all_differ(&shapes.map(json));
}

#[test]
fn scenario_08_duplicate_members_count_as_raw_bytes() {
    for duplicate in [r#"{"a":1,"a":2}"#, r#"[{"b":{"a":1,"\u0061":1}}]"#] {
        same(json(duplicate), json(duplicate));
        differ(json(duplicate), json(format!("{duplicate} ")));
    }
    differ(json(r#"{"a":1,"a":2}"#), json(r#"{"a":2,"a":1}"#));
    differ(json(r#"{"a":1,"a":2}"#), json(r#"{"a":2}"#));
    same(json(r#"{"a":1,"b":{"a":1}}"#), json(r#"{"b":{"a":1},"a":1}"#));
}

#[test]
fn what_is_no_json_counts_as_raw_bytes() {
    let broken: [&[u8]; 10] = [
        b"",
        b"{\"a\":1",
        b"{\"a\":1}x",
        b"{'a':1}",
        b"[1,]",
        b"01",
        b"NaN",
        b"\"\xff\"",
        b"\"\\ud800\"",
        b"\xef\xbb\xbf{}",
    ];
    for body in broken {
        same(json(body), json(body));
        differ(json(body), json([b" ", body].concat()));
    }
    all_differ(&broken.map(json));
}

#[test]
fn nesting_deeper_than_64_counts_as_raw_bytes() {
    let nested = |depth: usize, space: &str| json(format!("{}{space}{}", "[".repeat(depth), "]".repeat(depth)));
    same(nested(64, ""), nested(64, " "));
    differ(nested(65, ""), nested(65, " "));
    same(nested(65, ""), nested(65, ""));
}

#[test]
fn depth_costs_no_stack() {
    const MIB: usize = 1 << 20;
    let nested = [b"[".repeat(MIB / 16), b"]".repeat(MIB / 16)].concat();
    let unclosed = [b"[".as_slice(), b"{\"a\":", b"[{\"a\":"].map(|level| level.repeat(MIB / level.len()));
    for body in unclosed.iter().chain([&nested]) {
        differ(json(body), json([b" ", body.as_slice()].concat()));
        assert_ne!(fields(&["/0/0"], body).digest(), json(body).digest());
    }
    let pointer: &'static str = Box::leak("/0".repeat(MIB / 2).into_boxed_str());
    let pointers: &'static [&'static str] = Box::leak(Box::new([pointer]));
    same(fields(pointers, "[[[1]]]"), fields(pointers, "[[[2]]]"));
}

#[test]
fn json_is_what_the_media_type_says() {
    for media_type in [JSON, "APPLICATION/JSON", "text/json", "application/problem+json; charset=utf-8", "a/b+JSON"] {
        same(whole(media_type, "[1]"), whole(media_type, " [1] "));
    }
    for media_type in ["", "text/plain", "application/jsonp", "application/octet-stream", "application/json+xml"] {
        differ(whole(media_type, "[1]"), whole(media_type, " [1] "));
    }
}

#[test]
fn media_type_counts_without_parameters_and_case() {
    let body = b"{}";
    same(whole("application/json", body), whole(" Application/JSON ; charset=UTF-8", body));
    all_differ(&["application/json", "text/json", "text/plain", ""].map(|media_type| whole(media_type, body)));
}

#[test]
fn scenario_09_case_37_path_and_query_count() {
    differ(at(&["1"], ""), at(&["2"], ""));
    differ(at(&["1"], ""), at(&["1"], "dry_run=true"));
    all_differ(&[
        at(&[], ""),
        at(&[""], ""),
        at(&["", ""], ""),
        at(&["ab"], ""),
        at(&["a", "b"], ""),
        at(&["b", "a"], ""),
        at(&[], "a=b"),
        at(&[], "a=&b="),
    ]);
}

#[test]
fn query_is_compared_decoded_and_by_name() {
    same(at(&[], "a=1&b=2"), at(&[], "b=2&a=1"));
    same(at(&[], "a=x%20y&%62=2"), at(&[], "b=2&a=x+y"));
    differ(at(&[], "a=1&a=2"), at(&[], "a=2&a=1"));
    differ(at(&[], "a=1"), at(&[], "a=1&a=1"));
}

#[test]
fn form_pairs_are_compared_decoded_and_by_name() {
    same(form("a=1&b=x%20y"), form("b=x+y&a=1"));
    same(form("a=1&b=2&a=3"), form("b=2&a=1&a=3"));
    differ(form("a=1&b=2&a=3"), form("a=3&b=2&a=1"));
    all_differ(&["", "a=1", "a=2", "b=1", "A=1", "a=1&b=", "a=&b=1", "a%3D1=", "a=1%26b%3D"].map(form));
    differ(form("a=1&b=2"), whole("text/plain", "a=1&b=2"));
}

#[test]
fn pairs_that_are_not_utf_8_keep_their_bytes() {
    differ(form("a=%FF"), form("a=%FE"));
    differ(at(&[], "%FF=a"), at(&[], "%FE=a"));
    same(form("a=%FF"), form("a=%FF"));
}

#[test]
fn scenario_74_parts_count_not_the_boundary() {
    let with_boundary = |boundary: &str, content: &str| {
        let (media_type, parts) = (format!("multipart/form-data; boundary={boundary}"), [part(content)]);
        let body = Content::Parts(&parts);
        fingerprint(PayloadRule::Whole, &Material { body, ..material(&media_type, b"") })
    };
    same(with_boundary("x", "hello"), with_boundary("y", "hello"));
    differ(with_boundary("x", "hello"), with_boundary("x", "hellp"));
}

#[test]
fn every_property_of_a_part_counts() {
    all_differ(&[
        parts(&[]),
        parts(&[part("a")]),
        parts(&[part("b")]),
        parts(&[part("a"), part("b")]),
        parts(&[part("b"), part("a")]),
        parts(&[part("a"), part("a")]),
        parts(&[Part { name: None, ..part("a") }]),
        parts(&[Part { name: Some("".into()), ..part("a") }]),
        parts(&[Part { name: Some("other".into()), ..part("a") }]),
        parts(&[Part { filename: None, ..part("a") }]),
        parts(&[Part { filename: Some("".into()), ..part("a") }]),
        parts(&[Part { filename: Some("b.txt".into()), ..part("a") }]),
        parts(&[Part { content_type: None, ..part("a") }]),
        parts(&[Part { content_type: Some("text/html".into()), ..part("a") }]),
        parts(&[Part { name: Some("filea.txt".into()), filename: None, ..part("a") }]),
        parts(&[Part { name: None, filename: Some("filea.txt".into()), ..part("a") }]),
    ]);
    same(parts(&[part("a")]), parts(&[Part { content_type: Some("Text/Plain; charset=utf-8".into()), ..part("a") }]));
}

#[test]
fn parts_are_parts_under_every_rule_that_reads_the_body() {
    for rule in [PayloadRule::Whole, PayloadRule::Raw, PayloadRule::Fields(&["/a"])] {
        let of = |content| {
            let parts = [part(content)];
            fingerprint(rule, &Material { body: Content::Parts(&parts), ..material("multipart/form-data", b"") })
        };
        same(of("a"), of("a"));
        differ(of("a"), of("b"));
    }
}

#[test]
fn raw_takes_the_body_byte_for_byte() {
    let raw = |media_type, path: &[&str], query, body: &str| {
        fingerprint(PayloadRule::Raw, &Material { path, query, ..material(media_type, body.as_bytes()) })
    };
    let first = raw(JSON, &["1"], "a=1&b=2", "{}");
    same(first, raw("application/json; charset=utf-8", &["1"], "b=2&a=1", "{}"));
    differ(first, raw(JSON, &["1"], "a=1&b=2", "{ }"));
    differ(first, raw(JSON, &["2"], "a=1&b=2", "{}"));
    differ(first, raw(JSON, &["1"], "a=1", "{}"));
    differ(first, raw("text/plain", &["1"], "a=1&b=2", "{}"));
    differ(raw(FORM, &[], "", "a=1&b=2"), raw(FORM, &[], "", "b=2&a=1"));
}

#[test]
fn none_is_a_constant() {
    let of = |path: &[&str], query, body: &str| {
        fingerprint(PayloadRule::None, &Material { path, query, ..material(JSON, body.as_bytes()) })
    };
    same(of(&[], "", ""), of(&["1"], "a=1", "{}"));
}

#[test]
fn case_30_every_byte_counts_at_every_size() {
    for size in [1, 29 << 10, 31 << 10, 1 << 20] {
        for media_type in [JSON, FORM, "application/octet-stream", ""] {
            let body = vec![b'1'; size];
            let mut last = body.clone();
            last[size - 1] = b'2';
            same(whole(media_type, &body), whole(media_type, &body));
            differ(whole(media_type, &body), whole(media_type, &last));
            differ(whole(media_type, &body), whole(media_type, ""));
        }
    }
}

#[test]
fn digests_of_another_algorithm_count_as_a_match() {
    let (old, new) = (Fingerprint::from_parts(0, [1; 32]), Fingerprint::from_parts(1, [2; 32]));
    same(old, new);
    differ(Fingerprint::from_parts(1, [1; 32]), new);
    same(Fingerprint::from_parts(new.algorithm(), *new.digest()), new);
}

#[test]
fn debug_output_is_a_prefix_of_the_digest() {
    let mut digest = [0xEE; 32];
    digest[..4].copy_from_slice(&[0x01, 0x23, 0xAB, 0xCD]);
    assert_eq!(format!("{:?}", Fingerprint::from_parts(1, digest)), "Fingerprint(#0123abcd)");
}
