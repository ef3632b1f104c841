//! Lists what a site offers machines: `cargo run --example discover -- URL`.

use std::process::ExitCode;

use clap::Parser;
use etiquette_examples::discover::{Args, run};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args, &mut std::io::stdout()).await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("discover: {error}");
            ExitCode::from(2)
        }
    }
}
