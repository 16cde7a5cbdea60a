//! Digests that are stored in somebody's database.

use std::collections::HashSet;

use super::*;

fn assert_pinned(rule: PayloadRule, material: &Material<'_>, digest: &str) {
    let found = fingerprint(rule, material);
    assert_eq!(
        (found.algorithm() / 4, hex(found.digest()).as_str()),
        (1, digest),
        "the algorithm has changed: raise `Fingerprint::ALGORITHM`, or due replays become mismatches"
    );
}

#[test]
fn the_algorithm_changes_only_with_its_number() {
    let body = br#"{"s":"\u00e9","n":[1.50,-0,true,null],"o":{}}"#;
    let document =
        Material { path: &["42", ""], query: "b=2&a=1", ..material("application/json; charset=utf-8", body) };
    let broken = material(JSON, b"{\"a\":1,\"a\":1}");
    let file =
        [Part { name: Some("f".into()), filename: None, content_type: Some("text/plain".into()), digest: [7; 32] }];
    let multipart = Material { body: Content::Parts(&file), ..material("multipart/form-data; boundary=x", b"") };

    assert_pinned(PayloadRule::Whole, &document, "18885c61b9eb0fe5d645040d25708161454419efdc4ab460ed54d0b1c751539a");
    assert_pinned(PayloadRule::Raw, &document, "f67b72087657dc40c3f1b78ff9f595d57af4f001079c4a9d2ef46c0925293df3");
    assert_pinned(
        PayloadRule::Fields(&["/n/0", "/s", "/x"]),
        &document,
        "5b5f21749770be041f2922f53b59512d83b6affbcab26374dcc5d968111e2694",
    );
    assert_pinned(PayloadRule::None, &document, "e52d9c508c502347344d8c07ad91cbd6068afc75ff6292f062a09ca381c89e71");
    assert_pinned(PayloadRule::Whole, &broken, "b438c73f351b07a5a1e5a8de464107502b4a8f8b436c9d6fb512b1ab702904c6");
    assert_pinned(
        PayloadRule::Fields(&["/a"]),
        &broken,
        "8772646ac058524a8cbfbd1868cb842a920a6c0bf525780e00d31194b97602fb",
    );
    assert_pinned(PayloadRule::Whole, &multipart, "fb9553a281ed56ffb7aa5fc811dc89a8b5a9ebcb4d615e232e0f841332312ab2");
    assert_pinned(
        PayloadRule::Whole,
        &material(FORM, b"b=2&a=%20&b=1"),
        "9b624881fc95aaeb8ec536638c3aa1f07b3b381b98d5681e8ade7816ea91a096",
    );
    assert_pinned(
        PayloadRule::Whole,
        &material(FORM, b"a=%FF"),
        "d5fcc03e7498f56ea222c0be981d1439ff203fc763c089b3a61dc082fbb8c4d0",
    );
}

#[test]
fn rules_do_not_run_into_each_other() {
    let rules =
        [PayloadRule::Whole, PayloadRule::Raw, PayloadRule::Fields(&[]), PayloadRule::Fields(&[""]), PayloadRule::None];
    let digests: HashSet<_> = rules.iter().map(|rule| *fingerprint(*rule, &material(JSON, b"{}")).digest()).collect();
    assert_eq!(digests.len(), rules.len());
}

#[test]
fn case_30_another_rule_counts_as_a_match() {
    let rules = [PayloadRule::Whole, PayloadRule::Raw, PayloadRule::Fields(&["/a"]), PayloadRule::None];
    for (a, b) in rules.into_iter().zip(rules.into_iter().skip(1)) {
        same(fingerprint(a, &material(JSON, b"{}")), fingerprint(b, &material(JSON, b"{}")));
    }
}
