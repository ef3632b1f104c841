//! Polls feeds at their own pace: `cargo run --example feeds -- URL…`. Without a URL it plays a day on virtual time.

use std::process::ExitCode;

use clap::Parser;
use etiquette_examples::cli::ctrl_c;
use etiquette_examples::feeds::{Args, run, simulate};
use tower_etiquette::BoxError;

fn main() -> ExitCode {
    let args = Args::parse();
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("feeds: {error}");
            ExitCode::from(2)
        }
    }
}

fn start(args: &Args) -> Result<(), BoxError> {
    let mut runtime = if args.urls.is_empty() {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let out = &mut std::io::stdout();
    if args.urls.is_empty() {
        let runtime = runtime.enable_time().start_paused(true).build()?;
        return runtime.block_on(simulate(out)).map(|_| ());
    }
    let runtime = runtime.enable_all().build()?;
    runtime.block_on(run(args, out, ctrl_c()))
}
