//! The command line.

use clap::Parser;
use http::Uri;

use crate::cli::Named;

/// Polls feeds at the pace that they and their sites ask for.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "feeds")]
#[non_exhaustive]
pub struct Args {
    /// The feeds. Without any, a day of polling is played on virtual time.
    #[arg(value_name = "URL")]
    pub urls: Vec<Uri>,
    /// Who asks.
    #[command(flatten)]
    pub named: Named,
    /// Ends after this many polls; by default it goes on until it is stopped.
    #[arg(long, value_name = "N")]
    pub polls: Option<usize>,
    /// Allows targets on loopback and in private networks.
    #[arg(long)]
    pub allow_private: bool,
}
