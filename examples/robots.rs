//! What a robots.txt says: `cargo run --example robots -- check|explain|lint FILE_OR_URL`.

use std::process::ExitCode;

use clap::Parser;
use etiquette_examples::cli::chain;
use etiquette_examples::robots::{Args, run};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args, &mut std::io::stdout()).await {
        Ok(answer) => ExitCode::from(answer.status()),
        Err(error) => {
            eprintln!("robots: {}", chain(&error));
            ExitCode::from(2)
        }
    }
}
