//! The whole stack around a reqwest client: `cargo run --example reqwest_client`.

use tower_etiquette::BoxError;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    etiquette_examples::reqwest_client::run(&mut std::io::stdout()).await
}
