//! Case 84: the first answer of a function is what a replay gives, or there is no replay; never something else.

use std::collections::{BTreeMap, HashMap};

use axum::Router;
use idem_runtime::{Error, ErrorKind, Runtime, idempotent, state::State as Stands};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::support::Shop;

#[idempotent(function, runtime = runtime, scope = global, op = "values.make", key = key)]
async fn make<T: Clone + Serialize + DeserializeOwned>(runtime: &Runtime, key: &str, value: &T) -> Result<T, Error> {
    Ok(value.clone())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Hard {
    sum: f64,
    minus_zero: f64,
    subnormal: f64,
    single: f32,
    big: u128,
    small: i128,
    by_number: BTreeMap<i64, String>,
    pair: (u8, Option<char>),
    unit: (),
    nested: Option<Vec<Choice>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Choice {
    Nothing,
    One(String),
    Named { at: std::time::Duration },
}

fn hard() -> Hard {
    Hard {
        sum: 0.1 + 0.2,
        minus_zero: -0.0,
        subnormal: 5e-324,
        single: 0.1 + 0.7,
        big: u128::MAX,
        small: i128::MIN,
        by_number: [(i64::MIN, "min".to_owned()), (-1, "\u{0}\u{1f980}".to_owned())].into(),
        pair: (7, Some('\u{fffd}')),
        unit: (),
        nested: Some(vec![
            Choice::Nothing,
            Choice::One(String::new()),
            Choice::Named { at: std::time::Duration::new(1, 999_999_999) },
        ]),
    }
}

/// Two calls with one key.
async fn twice<T: Clone + Serialize + DeserializeOwned>(
    shop: &Shop,
    key: &str,
    value: &T,
) -> (T, Result<T, ErrorKind>) {
    let first = make(&shop.runtime, key, value).await.unwrap();
    (first, make(&shop.runtime, key, value).await.map_err(|error| error.kind()))
}

#[tokio::test]
async fn case_84_the_first_answer_equals_the_replay() {
    let shop = Shop::open(Router::new()).await;
    let (first, again) = twice(&shop, "hard", &hard()).await;
    assert_eq!(first, hard(), "and nothing is lost on the way");
    assert_eq!(again.unwrap(), first);
    assert!(first.minus_zero.is_sign_negative());
    for n in 0..200 {
        let value = f64::from_bits(0x3ff0_0000_0000_0000 + n * 0x0000_1234_5678_9abc);
        let (first, again) = twice(&shop, &n.to_string(), &value).await;
        assert_eq!((first.to_bits(), again.unwrap().to_bits()), (value.to_bits(), value.to_bits()), "{value:e}");
    }
}

/// What is not stored is not in the first answer either, so that nobody relies on it.
#[tokio::test]
async fn case_84_a_skipped_field_is_skipped_for_the_first_caller_as_well() {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Skips {
        kept: u8,
        #[serde(skip)]
        secret: String,
    }
    let shop = Shop::open(Router::new()).await;
    let (first, again) = twice(&shop, "k", &Skips { kept: 1, secret: "s".to_owned() }).await;
    assert_eq!(first, Skips { kept: 1, secret: String::new() });
    assert_eq!(again.unwrap(), first);
}

#[tokio::test]
async fn case_84_a_value_that_does_not_survive_is_never_replayed_as_another() {
    let shop = Shop::open(Router::new()).await;
    for (key, value) in [("nan", f64::NAN), ("infinite", f64::INFINITY)] {
        let (first, again) = twice(&shop, key, &value).await;
        assert_eq!(first.to_bits(), value.to_bits(), "the caller gets what the body made");
        assert_eq!(again.unwrap_err(), ErrorKind::ResultUnavailable, "{key}");
    }
    let by_pair = HashMap::from([((1, 2), 3)]);
    let (first, again) = twice(&shop, "map", &by_pair).await;
    assert_eq!((first, again.unwrap_err()), (by_pair, ErrorKind::ResultUnavailable), "JSON has no such keys");
    let record = shop.runtime.find("values.make", Global, "map").await.unwrap().unwrap();
    assert_eq!(record.state, Stands::Done, "done all the same: nobody runs it again");
}

/// Deploys change types; what was stored does not change with them.
#[tokio::test]
async fn clause_38_a_value_that_the_type_cannot_read_any_more_is_unavailable() {
    let shop = Shop::open(Router::new()).await;
    make(&shop.runtime, "k", &"text".to_owned()).await.unwrap();
    let error = make(&shop.runtime, "k", &7_u32).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResultUnavailable);
    assert!(std::error::Error::source(&error).is_some(), "it says why");
    assert_eq!(make(&shop.runtime, "k", &String::new()).await.unwrap(), "text");
}

/// The scope of `global`: no part at all.
struct Global;

impl idem_runtime::ScopePart for Global {
    fn write_scope(&self, _: &mut idem_runtime::ScopeWriter) {}
}
