//! The command line.

use std::net::SocketAddr;

use clap::Parser;

use crate::cli::Named;

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "axum_service",
    about = "A link-preview service whose fetches are made for the person who asks"
)]
pub struct Args {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:8003")]
    pub listen: SocketAddr,
    /// Who asks. Without a name of its own the service asks nobody but this machine.
    #[command(flatten)]
    pub named: Named,
    /// The operator's name for pages that a person asked for.
    #[arg(long, value_name = "T")]
    pub user_token: Option<String>,
    /// Allows links to loopback, private and other addresses that are not public.
    #[arg(long)]
    pub allow_private: bool,
}
