//! Fetches one page because a person asked for it: `cargo run --example fetch -- URL`.

use std::process::ExitCode;

use clap::Parser;
use etiquette_examples::fetch::{Args, run};

#[tokio::main]
async fn main() -> ExitCode {
    run(
        &Args::parse(),
        &mut std::io::stdout(),
        &mut std::io::stderr(),
    )
    .await
    .into()
}
