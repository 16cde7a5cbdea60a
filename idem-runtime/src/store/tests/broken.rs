//! Stores with one fault each. The suite must find every fault, by the cases that name it and by no other.

mod faulty;
mod found;

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures_util::future::BoxFuture;

use self::{
    faulty::{Fault, Faulty},
    found::{FOUND_BY, orders, purges, recoveries, reruns, steps, transactions},
};
use super::*;

type Case = (&'static str, fn(Faulty) -> BoxFuture<'static, ()>);

/// Adds each case to a list.
macro_rules! listed {
    (plain $cases:path, $group:ident: $($case:ident)*) => {$(
        $cases.push((stringify!($case), |store| Box::pin(async move {
            crate::conformance::$group::$case(&store).await;
        })));
    )*};
    (race $cases:path, $group:ident: $($case:ident)*) => {$(
        $cases.push((stringify!($case), |store| Box::pin(crate::conformance::$group::$case(Arc::new(store)))));
    )*};
    (timed $cases:path, $group:ident: $($case:ident)*) => {$(
        $cases.push((stringify!($case), |store| Box::pin(async move {
            crate::conformance::$group::$case(&store, &Paused).await;
        })));
    )*};
    (bodies $cases:path, $group:ident: $($case:ident)*) => {$(
        $cases.push((stringify!($case), |store| Box::pin(async move {
            crate::conformance::$group::$case(&store, &store.body()).await;
        })));
    )*};
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    crate::__store_cases! { plain listed, cases }
    crate::__store_cases! { timed listed, cases }
    crate::__store_cases! { steps listed, cases }
    crate::__store_cases! { ordered listed, cases }
    crate::__store_cases! { bodies listed, cases }
    cases
}

fn found_by() -> impl Iterator<Item = &'static (Fault, &'static [&'static str])> {
    FOUND_BY
        .iter()
        .chain(recoveries::FOUND_BY)
        .chain(purges::FOUND_BY)
        .chain(reruns::FOUND_BY)
        .chain(steps::FOUND_BY)
        .chain(transactions::FOUND_BY)
        .chain(orders::FOUND_BY)
}

/// The cases that fail on a store with this fault. One thread and tokio's own clock: the tasks of a race take turns at
/// every `yield_now`, each time in the same order.
fn failed(fault: Fault) -> BTreeSet<&'static str> {
    let fails = |case: fn(Faulty) -> BoxFuture<'static, ()>| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let run = || runtime.block_on(async { case(Faulty::new(fault)).await });
        catch_unwind(AssertUnwindSafe(run)).is_err()
    };
    cases().into_iter().filter(|(_, case)| fails(*case)).map(|(name, _)| name).collect()
}

#[test]
fn each_fault_is_found_by_the_cases_that_name_it() {
    let wrong = found_by().filter_map(|(fault, by)| {
        let (failed, by) = (failed(*fault), by.iter().copied().collect::<BTreeSet<_>>());
        (failed != by).then(|| format!("{fault:?}: failed {failed:?}, expected {by:?}"))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}

/// A store that forgets fails whatever asks it twice, so that one alone is no evidence.
#[test]
fn each_case_finds_a_fault() {
    let telling = found_by().filter(|(fault, _)| *fault != Fault::ForgetsAnswers);
    let finds: BTreeSet<_> = telling.flat_map(|(_, by)| by.iter().copied()).collect();
    let idle: Vec<_> = cases().into_iter().map(|(name, _)| name).filter(|name| !finds.contains(name)).collect();
    assert!(idle.is_empty(), "cases that no fault fails prove nothing: {idle:?}");
}
