//! Each command runs and fills its tables. How fast that goes is nobody's business here: tests share their machine.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Command;

/// Runs the command and gives what it printed.
fn bench(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_idem-bench")).args(arguments).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "idem-bench {}:\n{told}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

/// Long enough for an answer each; a cell takes as long as that.
const SHORT: [&str; 6] = ["--seconds", "0.05", "--warm-up", "0.05", "--reps", "1"];

#[test]
fn every_row_of_run_is_filled_on_postgres() {
    let printed = bench(&[&["run", "--stores", "postgres", "--connections", "2", "--hot", "20"], &SHORT[..]].concat());
    for title in ["Unique keys", "Replays of keys", "32 requests at once", "Three recorded steps", "takes 1 ms longer"]
    {
        assert!(printed.contains(title), "no `{title}` in\n{printed}");
    }
    is_filled(&printed);
}

#[test]
fn every_row_of_run_is_filled_on_sqlite() {
    let printed = bench(&[&["run", "--stores", "sqlite", "--connections", "2", "--hot", "20"], &SHORT[..]].concat());
    is_filled(&printed);
}

#[test]
fn every_row_of_growth_is_filled() {
    let printed = bench(&[&["growth", "--keys", "1000,2000", "--expired", "3000"], &SHORT[..]].concat());
    assert!(printed.contains("| 3000 |"), "not all were purged:\n{printed}");
    is_filled(&printed);
}

#[test]
fn a_silent_database_and_too_much_are_answered() {
    let printed = bench(&[&["overload", "--bodies", "60", "--store-timeout", "1"], &SHORT[..]].concat());
    assert_eq!(printed.matches(". 0 got no answer").count(), 2, "of the open load: {printed}");
    assert_eq!(printed.matches("\n0 got no answer").count(), 2, "of the silent database: {printed}");
    assert_eq!(printed.matches("with 30 effects of 30 keys, at most 1 of one").count(), 2, "{printed}");
    assert_eq!(printed.matches("30 of 30 were within").count(), 2, "{printed}");
    assert!(!printed.contains("the connection broke"), "{printed}");
}

#[test]
fn what_sleeps_is_weighed() {
    is_filled(&bench(&["memory", "--bodies", "100"]));
}

/// A cell without a number is one that was not measured. An effect happens once, but for the bare handler's.
fn is_filled(printed: &str) {
    assert!(printed.contains("\n| "), "no table:\n{printed}");
    assert!(!printed.contains("NaN") && !printed.contains("inf"), "a cell without a number:\n{printed}");
    for told in printed.lines().filter(|line| line.starts_with("Not every request was answered 201")) {
        assert!(told.split(" × ").skip(1).all(|status| status.starts_with("503")), "{told}"); // 503: a busy machine
    }
    let effects = printed.split("#### ").find(|section| section.starts_with("32 requests"));
    for row in
        effects.into_iter().flat_map(str::lines).filter(|row| row.starts_with("| by hand") || row.starts_with("| **"))
    {
        let most = row.split('|').nth(3).map(str::trim);
        assert_eq!(most, Some("1"), "{row}");
    }
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    for (arguments, told) in [
        (&["rnu"][..], "there is no command `rnu`"),
        (&["run", "--stores", "mysql"], "a store is `postgres` or `sqlite`"),
        (&["run", "--second", "2"], "--seconds 2"),
        (&["run", "--seconds", "two"], "`two` are no seconds"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_idem-bench")).args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(told), "{arguments:?}: {error}");
    }
}
