//! Three layers picked by hand around hyper-util's client: `cargo run --example hyper_client`.

use tower_etiquette::BoxError;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    etiquette_examples::hyper_client::run(&mut std::io::stdout()).await
}
