//! DBOS Transact for Python, over the same Postgres; its callers are threads of its own process.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::{Row, output};
use crate::{Result, cell::Pace, place::Place};

const SCRIPT: &str = include_str!("../../peers/dbos_bench.py");
const WHAT_TO_DO: &str = "`peers` needs Python 3.10 or newer with `venv`, and a way to PyPI";

pub(super) struct Dbos {
    pub(super) version: String,
    python: PathBuf,
    script: PathBuf,
    url: String,
}

impl Dbos {
    pub(super) async fn install(folder: &Path, place: &mut Place) -> Result<Self> {
        let (environment, script) = (folder.join("python"), folder.join("dbos_bench.py"));
        output(Command::new("python3").args(["-m", "venv"]).arg(&environment), WHAT_TO_DO).await?;
        let python = environment.join("bin/python");
        output(Command::new(&python).args(["-m", "pip", "install", "--quiet", "dbos"]), WHAT_TO_DO).await?;
        let version = "import importlib.metadata; print(importlib.metadata.version('dbos'))";
        let version = output(Command::new(&python).args(["-c", version]), WHAT_TO_DO).await?.trim().to_owned();
        std::fs::write(&script, SCRIPT)?;
        // A database of its own on the same server; it makes its tables itself.
        let url = place.url();
        let Place::Postgres { look, .. } = place else { return Err("DBOS is measured on Postgres".into()) };
        sqlx::raw_sql("create database dbos").execute(look).await?;
        let url = url.replace("postgres://", "postgresql://").replace("/postgres?", "/dbos?");
        Ok(Self { version, python, script, url })
    }

    pub(super) async fn drive(&self, pace: Pace) -> Result<Row> {
        let mut command = Command::new(&self.python);
        command
            .arg(&self.script)
            .arg(&self.url)
            .arg(pace.connections.to_string())
            .args([pace.warm_up, pace.measure].map(|it| it.as_secs_f64().to_string()));
        let printed = output(&mut command, "look at what it says").await?;
        let last = printed.lines().last().unwrap_or_default();
        let numbers: Vec<f64> = last.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        numbers.try_into().map_err(|_| format!("{} printed no numbers: {last}", self.script.display()).into())
    }
}
