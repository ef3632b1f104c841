//! The command line.

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use clap::{Parser, ValueEnum};
use http::Uri;

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "gateway",
    about = "A small reverse proxy with the named layers in it"
)]
pub struct Args {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:8002")]
    pub listen: SocketAddr,
    /// The site behind it: scheme, host and port.
    #[arg(long)]
    pub upstream: Uri,
    /// The layers, in any order; each stands where it belongs.
    #[arg(long, value_delimiter = ',')]
    pub layers: Vec<Name>,
    /// The cache serves several users, and guesses the lifetimes that are not stated.
    #[arg(long)]
    pub shared_cache: bool,
    /// The bytes of responses that the cache keeps in memory.
    #[arg(long, default_value_t = 256 << 20)]
    pub cache_bytes: usize,
    /// The product token, for the layers that name the client.
    #[arg(long, default_value = "ExampleBot")]
    pub token: String,
    /// The version beside it.
    #[arg(long, default_value = "0.1")]
    pub bot_version: String,
    /// The page that says who this is.
    #[arg(long, default_value = "https://www.example.com/bot.html")]
    pub info_url: String,
    /// Allows loopback, private and other addresses that are not public beside the upstream's, where its robots.txt
    /// redirects to one.
    #[arg(long)]
    pub allow_private: bool,
    /// The threads that answer. Default: as many as the machine runs at once.
    #[arg(long)]
    pub workers: Option<NonZeroUsize>,
    /// The shortest delay between two requests, for the budget, in seconds.
    #[arg(long, default_value_t = 1.0)]
    pub delay: f64,
}

/// A layer's name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Name {
    /// The client's own name on each request.
    UserAgent,
    /// What it reads.
    Accept,
    /// The rules of the site.
    Robots,
    /// Stored responses.
    Cache,
    /// Pauses that the site asks for.
    RetryAfter,
    /// Permits and delays.
    Budget,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_as_documented() {
        let args = Args::try_parse_from([
            "gateway",
            "--listen=127.0.0.1:0",
            "--upstream=http://127.0.0.1:8000",
            "--layers=user-agent,accept,robots,cache,retry-after,budget",
            "--shared-cache",
            "--cache-bytes=1000",
            "--workers=2",
            "--delay=0.5",
            "--allow-private",
        ])
        .unwrap();
        assert_eq!(args.layers.len(), 6);
        assert_eq!((args.delay, args.cache_bytes), (0.5, 1_000));
        assert!(args.shared_cache && args.allow_private);
        let given = ["gateway", "--upstream=http://127.0.0.1:8000"];
        assert_eq!(Args::try_parse_from(given).unwrap().delay, 1.0);
        assert!(Args::try_parse_from(["gateway"]).is_err());
    }
}
