//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::cli::{Named, Resolve, seconds};

/// Fetches one page because a person asked for it, and says why if it does not.
///
/// Exit status: 0 done; 2 usage; 3 no URL; 6 no such host; 7 no connection; 9 refused (by a rule, the name); 22 an HTTP
/// error with --fail; 23 output; 28 too slow; 47 too many redirects; 56 the connection broke; 60 TLS; 63 too large; 75
/// refused for now, come back later; 76 the host's address is not public.
#[derive(Clone, Debug, Parser)]
#[command(name = "fetch")]
#[non_exhaustive]
pub struct Args {
    /// The page that the person named.
    #[arg(value_name = "URL")]
    pub url: String,
    /// Writes the page there instead of to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Shows the response head before the page.
    #[arg(short, long)]
    pub include: bool,
    /// Writes one JSON object with head, facts, body or refusal instead of the page.
    #[arg(long)]
    pub json: bool,
    /// Treats an HTTP error as a failure, without output.
    #[arg(short, long)]
    pub fail: bool,
    /// Asks for HTML instead of preferring markdown.
    #[arg(long)]
    pub html: bool,
    /// Who asks.
    #[command(flatten)]
    pub named: Named,
    /// The operator's name for pages that a person asked for. Required unless the page is on this machine.
    #[arg(long, value_name = "T")]
    pub user_token: Option<String>,
    /// Allows loopback, private and other addresses that are not public.
    #[arg(long)]
    pub allow_private: bool,
    /// Connects to ADDR instead of asking for the addresses of HOST.
    #[arg(long, value_name = "HOST:PORT:ADDR")]
    pub resolve: Vec<Resolve>,
    /// Trusts the root certificates in this file, PEM or DER, beside the built-in ones.
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// The most bytes of the page.
    #[arg(long, value_name = "N", default_value_t = 10 << 20)]
    pub max_bytes: u64,
    /// How long the page may take.
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    pub max_time: Duration,
    /// How long to wait where the site asks for a pause.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub max_wait: Duration,
}
