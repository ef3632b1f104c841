//! Crawls a site politely, by default one that the program serves to itself: `cargo run --example crawl`.

use std::process::ExitCode;

use clap::Parser;
use etiquette_examples::crawl::{Args, run};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let stop = async {
        // Without signals there is no Ctrl-C to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    match run(&args, &mut std::io::stdout(), stop).await {
        Ok(outcome) => ExitCode::from(outcome.status()),
        Err(error) => {
            let mut text = format!("crawl: {error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                text += &format!(": {error}");
                cause = error.source();
            }
            eprintln!("{text}");
            ExitCode::from(error.status())
        }
    }
}
