//! What idem costs, measured beside the same by hand. `README.md` says how to read it.

mod cell;
mod chart;
mod child;
mod growth;
mod load;
mod machine;
mod memory;
mod options;
mod overload;
mod peers;
mod place;
mod postgres;
mod report;
mod run;
mod seed;
mod serve;
mod variant;

use std::process::ExitCode;

use options::{Command, USAGE};

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    match begin() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("idem-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn begin() -> Result<()> {
    // The server has all CPUs. The load has one thread: it shares them with what it measures.
    let mut load = tokio::runtime::Builder::new_current_thread();
    let mut server = tokio::runtime::Builder::new_multi_thread();
    let measuring = load.enable_all().build()?;
    match options::parse(std::env::args().skip(1))? {
        Command::Serve(setting) => server.enable_all().build()?.block_on(serve::serve(&setting)),
        Command::Run(options) => measuring.block_on(run::run(&options)),
        Command::Growth(options) => measuring.block_on(growth::growth(&options)),
        Command::Overload(options) => measuring.block_on(overload::overload(&options)),
        Command::Memory(options) => measuring.block_on(memory::memory(&options)),
        Command::Peers(options) => measuring.block_on(peers::peers(&options)),
        Command::Help => {
            println!("{USAGE}");
            Ok(())
        }
    }
}
