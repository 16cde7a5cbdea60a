//! The list of cases is complete.

#[test]
fn every_case_is_in_the_list() {
    let list = include_str!("../conformance.rs");
    for (group, source) in [
        ("claims", include_str!("claims.rs")),
        ("committed", include_str!("committed.rs")),
        ("decided", include_str!("decided.rs")),
        ("finishes", include_str!("finishes.rs")),
        ("inputs", include_str!("inputs.rs")),
        ("listings", include_str!("listings.rs")),
        ("operators", include_str!("operators.rs")),
        ("ordered", include_str!("ordered.rs")),
        ("purges", include_str!("purges.rs")),
        ("races", include_str!("races.rs")),
        ("recorded", include_str!("recorded.rs")),
        ("recoveries", include_str!("recoveries.rs")),
        ("reruns", include_str!("reruns.rs")),
        ("transactions", include_str!("transactions.rs")),
        ("windows", include_str!("windows.rs")),
    ] {
        let from = list.find(&format!("$with, {group}:")).unwrap();
        let listed: Vec<_> =
            list[from..].lines().skip(1).map(str::trim).take_while(|line| *line != "}").map(String::from).collect();
        let cases: Vec<_> = source
            .lines()
            .filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next().map(String::from))
            .collect();
        assert!(!cases.is_empty());
        assert_eq!(cases, listed, "the cases of `{group}` and the list in `__store_cases!`, in order");
    }
}

#[test]
fn every_group_of_cases_is_looked_at() {
    let modules = include_str!("../conformance.rs").lines().filter(|line| line.starts_with("pub mod ")).count();
    assert_eq!(modules, 15, "a new group belongs into `every_case_is_in_the_list`");
}
