//! What a robots.txt says: `cargo run --example robots -- check|explain|lint FILE_OR_URL`.

use std::process::ExitCode;

use clap::Parser;
use etiquette_examples::robots::{Args, run};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args, &mut std::io::stdout()).await {
        Ok(answer) => ExitCode::from(answer.status()),
        Err(error) => {
            let mut text = format!("robots: {error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                text += &format!(": {error}");
                cause = error.source();
            }
            eprintln!("{text}");
            ExitCode::from(2)
        }
    }
}
