//! A link-preview service whose fetches are made for the person who asks:
//! `cargo run --example axum_service -- --listen 127.0.0.1:8003`, then `curl '127.0.0.1:8003/preview?url=https://…'`.

use clap::Parser;
use etiquette_examples::axum_service::{Args, run};
use tower_etiquette::BoxError;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run(&Args::parse(), &mut std::io::stdout()).await
}
