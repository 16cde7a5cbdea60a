//! Where results go: between two markers of `bench/README.md`.

use std::{fs, path::PathBuf};

use crate::{Result, machine, place::today};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// On what, how and when.
pub(crate) async fn head(command: &str) -> Result<String> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let profile = if cfg!(debug_assertions) { " (in a debug build, so the numbers mean nothing)" } else { "" };
    Ok(format!(
        "{}, {}.\n`cargo run --release -p idem-bench -- {}`{profile}\n",
        today().await?,
        machine::describe()?,
        [vec![command.to_owned()], arguments].concat().join(" ").trim(),
    ))
}

/// Puts `text` where the results of `command` stand.
pub(crate) fn write(command: &str, text: &str) -> Result<()> {
    let file = folder().join("README.md");
    let old = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let new = between(&old, command, text).ok_or_else(|| {
        format!("{} has no lines `<!-- {command} -->` and `<!-- /{command} -->`: put them back", file.display())
    })?;
    Ok(fs::write(&file, new).map_err(|error| format!("{}: {error}", file.display()))?)
}

pub(crate) fn write_chart(svg: &str) -> Result<()> {
    let file = folder().join("chart.svg");
    Ok(fs::write(&file, svg).map_err(|error| format!("{}: {error}", file.display()))?)
}

fn between(old: &str, marker: &str, text: &str) -> Option<String> {
    let (before, rest) = old.split_once(&format!("<!-- {marker} -->\n"))?;
    let (_, after) = rest.split_once(&format!("<!-- /{marker} -->"))?;
    Some(format!("{before}<!-- {marker} -->\n{}\n<!-- /{marker} -->{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let old = "a\n<!-- run -->\nold\n<!-- /run -->\nb\n";
        let new = between(old, "run", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- run -->\nnew\n<!-- /run -->\nb\n");
        assert_eq!(between(&new, "run", "new").unwrap(), new);
        assert_eq!(between(old, "growth", "new"), None);
    }

    #[test]
    fn the_readme_has_the_markers_of_every_command() {
        let readme = fs::read_to_string(folder().join("README.md")).unwrap();
        for command in ["run", "growth", "overload", "memory", "peers"] {
            assert!(between(&readme, command, "").is_some(), "{command}");
        }
    }
}
