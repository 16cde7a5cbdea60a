//! Arbitrary JSON and forms, written in different ways.

use std::collections::BTreeMap;

use fastrand::Rng;
use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
pub(super) enum Json {
    /// A number, `true`, `false` or `null`.
    Scalar(String),
    Text(String),
    Array(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

fn number() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?"
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,8}", "[a-c\\\\\"/\u{0}-\u{1f}é😀]{0,8}"]
}

pub(super) fn document() -> impl Strategy<Value = Json> {
    let scalar = prop_oneof![
        number().prop_map(Json::Scalar),
        "true|false|null".prop_map(Json::Scalar),
        text().prop_map(Json::Text)
    ];
    scalar.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::btree_map(text(), inner, 0..6).prop_map(Json::Object),
        ]
    })
}

/// Writes JSON as a client may: white space, member order and escapes are up to `rng`.
pub(super) struct Writer {
    rng: Rng,
    out: String,
}

impl Writer {
    pub(super) fn write(json: &Json, seed: u64) -> String {
        let mut writer = Self { rng: Rng::with_seed(seed), out: String::new() };
        writer.value(json);
        writer.out
    }

    fn space(&mut self) {
        for _ in 0..self.rng.usize(..3) {
            self.out.push(self.rng.choice([' ', '\t', '\n', '\r']).unwrap());
        }
    }

    fn token(&mut self, token: char) {
        self.space();
        self.out.push(token);
        self.space();
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            if c < ' ' || matches!(c, '"' | '\\') || self.rng.bool() {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    self.out.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                self.out.push(c);
            }
        }
        self.out.push('"');
    }

    fn value(&mut self, json: &Json) {
        self.space();
        match json {
            Json::Scalar(text) => self.out.push_str(text),
            Json::Text(text) => self.text(text),
            Json::Array(items) => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.token(',');
                    }
                    self.value(item);
                }
                self.out.push(']');
            }
            Json::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                self.rng.shuffle(&mut members);
                self.out.push('{');
                for (at, (name, value)) in members.into_iter().enumerate() {
                    if at > 0 {
                        self.token(',');
                    }
                    self.text(name);
                    self.token(':');
                    self.value(value);
                }
                self.out.push('}');
            }
        }
        self.space();
    }
}

fn leaves(json: &mut Json) -> Vec<&mut Json> {
    match json {
        Json::Scalar(_) | Json::Text(_) => vec![json],
        Json::Array(items) => items.iter_mut().flat_map(leaves).collect(),
        Json::Object(members) => members.values_mut().flat_map(leaves).collect(),
    }
}

/// Another value in place of `leaf`; often one that looks like it.
fn change(leaf: &mut Json, rng: &mut Rng) {
    *leaf = match leaf {
        Json::Scalar(text) if rng.bool() => Json::Text(text.clone()),
        Json::Scalar(text) if text == "null" => Json::Scalar("0".to_owned()),
        Json::Scalar(_) => Json::Scalar("null".to_owned()),
        Json::Text(text) => Json::Text(if rng.bool() { format!("{text} ") } else { format!("\0{text}") }),
        Json::Array(_) | Json::Object(_) => unreachable!("not a leaf"),
    };
}

proptest! {
    #[test]
    fn the_way_json_is_written_does_not_matter(document in document(), a: u64, b: u64) {
        let (a, b) = (Writer::write(&document, a), Writer::write(&document, b));
        prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&a).is_ok(), "{}", a);
        prop_assert!(json(&a).matches(&json(&b)), "{} | {}", a, b);
        prop_assert!(fields(&[""], &a).matches(&fields(&[""], &b)), "{} | {}", a, b);
    }

    #[test]
    fn one_changed_scalar_matters(document in document(), at: prop::sample::Index, a: u64, b: u64) {
        let mut changed = document.clone();
        let mut leaves = leaves(&mut changed);
        prop_assume!(!leaves.is_empty());
        let at = at.index(leaves.len());
        change(leaves[at], &mut Rng::with_seed(b));
        let (a, b) = (Writer::write(&document, a), Writer::write(&changed, a));
        prop_assert!(!json(&a).matches(&json(&b)), "{} | {}", a, b);
        prop_assert!(!fields(&[""], &a).matches(&fields(&[""], &b)), "{} | {}", a, b);
    }

    #[test]
    fn every_text_of_a_number_is_its_own(a in number(), b in number()) {
        let around = |number: &str| json(format!("{{\"amount\": {number} }}"));
        prop_assert_eq!(around(&a).matches(&around(&b)), a == b);
        let longer = a.clone() + "0";
        prop_assert!(!around(&a).matches(&around(&longer)));
    }

    #[test]
    fn any_bytes_have_a_fingerprint(bytes in prop::collection::vec(any::<u8>(), 0..64), json_like in "[\\[\\]{}\",:0-9a-b\\\\u ]{0,32}") {
        for body in [bytes.as_slice(), json_like.as_bytes()] {
            for media_type in [JSON, FORM, ""] {
                prop_assert!(whole(media_type, body).matches(&whole(media_type, body)));
            }
            prop_assert!(fields(&["/0/a", ""], body).matches(&fields(&["/0/a", ""], body)));
        }
    }

    #[test]
    fn order_of_pairs_matters_within_a_name_only(pairs in prop::collection::vec(("[a-c ]{0,2}", "[^\u{fffd}]{0,4}"), 0..8), seed: u64) {
        let encode = |pairs: &[(String, String)]| form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let mut shuffled = pairs.clone();
        Rng::with_seed(seed).shuffle(&mut shuffled);
        let values = |pairs: &[(String, String)]| {
            let mut by_name = BTreeMap::<_, Vec<_>>::new();
            for (name, value) in pairs {
                by_name.entry(name.clone()).or_default().push(value.clone());
            }
            by_name
        };
        let equal = values(&pairs) == values(&shuffled);
        prop_assert_eq!(form(&encode(&pairs)).matches(&form(&encode(&shuffled))), equal);
        prop_assert_eq!(at(&[], &encode(&pairs)).matches(&at(&[], &encode(&shuffled))), equal);
    }
}
