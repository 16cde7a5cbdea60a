//! What the compiler says to a user: see `ui/README.md`.

use std::{env, io::Write as _, process::Command};

/// The texts under `ui/fail` are this compiler's.
const RUSTC: &str = "1.95";

#[test]
fn every_mistake_is_one_error_in_our_words() {
    let found = rustc_version();
    if found.starts_with(&format!("rustc {RUSTC}.")) {
        trybuild::TestCases::new().compile_fail("ui/fail/**/*.rs");
    } else {
        // Past the capture of the test harness, which hides what a passing test prints.
        let skipped = format!(
            "\nSKIPPED: tests/ui/fail holds the texts of rustc {RUSTC}, this is {found}; see tests/ui/README.md\n\n"
        );
        std::io::stderr().write_all(skipped.as_bytes()).unwrap();
    }
}

fn rustc_version() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
