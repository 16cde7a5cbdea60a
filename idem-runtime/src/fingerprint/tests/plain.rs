//! The canonical form once more, as plainly as can be: every value is read anew from the text of its own.

use std::{collections::BTreeMap, fmt};

use proptest::prelude::*;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{generated, *};

/// Each name once.
struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self(BTreeMap::new()))
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Members<'a> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some((name, value)) = map.next_entry()? {
            if self.0.insert(name, value).is_some() {
                return Err(A::Error::custom("a repeated name"));
            }
        }
        Ok(self)
    }
}

fn counted(out: &mut Vec<u8>, count: usize, bytes: &[u8]) {
    out.extend((count as u64).to_be_bytes());
    out.extend(bytes);
}

fn canonical(out: &mut Vec<u8>, json: &RawValue, levels: usize) -> Option<()> {
    let text = json.get();
    match text.as_bytes()[0] {
        b'{' | b'[' if levels == 0 => return None,
        b'{' => {
            let Members(members) = serde_json::from_str(text).ok()?;
            out.push(48);
            counted(out, members.len(), b"");
            for (name, value) in members {
                counted(out, name.len(), name.as_bytes());
                canonical(out, value, levels - 1)?;
            }
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push(49);
            counted(out, items.len(), b"");
            for item in items {
                canonical(out, item, levels - 1)?;
            }
        }
        b'"' => {
            let text: String = serde_json::from_str(text).ok()?;
            out.push(50);
            counted(out, text.len(), text.as_bytes());
        }
        _ => {
            out.push(51);
            counted(out, text.len(), text.as_bytes());
        }
    }
    Some(())
}

fn digest(body: &[u8]) -> [u8; 32] {
    let mut out = vec![17];
    let json: Option<&RawValue> = serde_json::from_slice(body).ok();
    if json.and_then(|json| canonical(&mut out, json, 64)).is_none() {
        out = vec![16];
        counted(&mut out, body.len(), body);
    }
    Sha256::digest(out).into()
}

#[track_caller]
fn check(body: &[u8]) {
    assert_eq!(canonical_digest(body), digest(body), "{:?}", String::from_utf8_lossy(body));
}

/// JSON whose names repeat and whose texts have halves of surrogate pairs, every now and then.
fn ambiguous() -> impl Strategy<Value = String> {
    let text = || r#""(a|b|\\u0061|\\n|\\ud83d\\ude00|é){0,3}""#;
    let leaf = prop_oneof![
        9 => text(),
        6 => "-?[0-9]{1,2}(\\.[0-9])?|true",
        1 => r#""a?\\u[dD][89abCDef]0[01]b?""#,
    ];
    leaf.prop_recursive(3, 12, 4, move |inner| {
        let members =
            prop::collection::vec((text(), inner.clone()).prop_map(|(name, value)| name + ":" + &value), 0..3);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            members.prop_map(|members| format!("{{{}}}", members.join(" ,"))),
        ]
    })
}

proptest! {
    #[test]
    fn all_json_has_the_canonical_form_that_it_has_read_plainly(document in generated::document(), seed: u64) {
        check(generated::Writer::write(&document, seed).as_bytes());
    }

    #[test]
    fn what_is_almost_json_too(document in generated::document(), seed: u64, at: prop::sample::Index, other: u8) {
        let mut body = generated::Writer::write(&document, seed).into_bytes();
        let at = at.index(body.len());
        check(&body[..at]);
        check(&body[at..]);
        body[at] = other;
        check(&body);
    }

    #[test]
    fn what_is_json_but_ambiguous_too(body in ambiguous()) {
        check(body.as_bytes());
    }
}

#[test]
fn every_escape_is_resolved() {
    for first in 0..=u16::MAX {
        check(format!("[\"a\\u{first:04x}b\", \"\\u{first:04X}\\u0041\"]").as_bytes());
        check(format!("\"\\u{first:04x}\\uDC00\\ud83d\\u{first:04x}\"").as_bytes());
    }
    for kind in 0..=u8::MAX {
        check(&[b"{\"x\\", [kind].as_slice(), b"y\\\\\":1}"].concat());
    }
}

#[test]
fn many_and_deep_values_stay_beside_their_own() {
    let object = |nr: usize, inner: &str| format!("{{\"z{nr}\":[1,[{nr},{inner}],{{}}],\"\\u0061\":{inner},\"b\":[]}}");
    let deep = (0..12).fold("\"\\n\"".to_owned(), |inner, nr| object(nr, &inner));
    check(deep.as_bytes());
    let wide: Vec<_> = (0..3000).map(|nr| format!("\"{:05}\":{}", nr * 7919 % 3000, object(nr, "[]"))).collect();
    check(format!("{{{}}}", wide.join(",")).as_bytes());
    for levels in [63, 64, 65] {
        check(format!("{}{}", "[".repeat(levels), "]".repeat(levels)).as_bytes());
        check(format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels)).as_bytes());
    }
}
