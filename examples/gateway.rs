//! A small reverse proxy with the named layers in it:
//! `cargo run --release --example gateway -- --listen 127.0.0.1:8002 --upstream http://127.0.0.1:8000 --layers cache --shared-cache`.

use clap::Parser;
use etiquette_examples::gateway::{Args, run};
use tower_etiquette::BoxError;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run(Args::parse(), &mut std::io::stdout()).await
}
