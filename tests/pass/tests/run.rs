//! What is right compiles without a warning, which has been seen by now, and runs.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// Name and program.
macro_rules! programs {
    ($($name:literal)*) => { [$(($name, env!(concat!("CARGO_BIN_EXE_", $name)))),*] };
}

const PROGRAMS: [(&str, &str); 21] = programs! {
    "attributes"
    "borrows"
    "debug-handler"
    "diverging-bodies"
    "every-argument"
    "facade"
    "generics"
    "impl-trait"
    "instrument"
    "items-in-the-body"
    "locals"
    "methods"
    "no-parameters"
    "patterns"
    "responses"
    "several-in-a-module"
    "shadowed-names"
    "static-references"
    "steps"
    "transactions"
    "unused-handler"
};

#[test]
fn what_is_right_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let files = fs::read_dir(folder).expect("there are programs").map(|file| file.expect("a file").path());
    let there: BTreeSet<String> = files
        .filter(|file| file.extension().is_some_and(|it| it == "rs"))
        .filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned()))
        .collect();
    let run: BTreeSet<String> = PROGRAMS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(run, there, "each program of `src/bin` is run here");
    for (name, program) in PROGRAMS {
        let output = Command::new(program).output().expect("it starts");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
