//! Crawls a site politely, by default one that the program serves to itself: `cargo run --example crawl`.

use std::process::ExitCode;

use clap::Parser;
use etiquette_examples::cli::{chain, ctrl_c};
use etiquette_examples::crawl::{Args, run};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args, &mut std::io::stdout(), ctrl_c()).await {
        Ok(outcome) => ExitCode::from(outcome.status()),
        Err(error) => {
            eprintln!("crawl: {}", chain(&error));
            ExitCode::from(error.status())
        }
    }
}
