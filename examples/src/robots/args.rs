//! The command line.

use clap::{Parser, Subcommand};
use etiquette_robots::ProductToken;

use super::source::Source;

/// Says what a robots.txt allows, how crawlers read it, and what they misread.
#[derive(Clone, Debug, Parser)]
#[command(name = "robots")]
#[non_exhaustive]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do with the file.
#[derive(Clone, Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Says for each URL whether it may be fetched, and by which rule. Exit status 0: all allowed, 1: one disallowed,
    /// 2: no answer.
    Check {
        /// The file.
        #[command(flatten)]
        source: Source,
        /// The crawler's name. Given several times: a crawler that obeys the groups of all these names.
        #[arg(long = "token", value_name = "T", required = true, value_parser = token)]
        tokens: Vec<ProductToken>,
        /// Pages of the site, as URLs or as paths.
        #[arg(value_name = "URL", required = true)]
        urls: Vec<String>,
    },
    /// Shows the groups as crawlers read them.
    Explain {
        /// The file.
        #[command(flatten)]
        source: Source,
        /// The crawlers to show it for [default: all that the file names].
        #[arg(long = "token", value_name = "T", value_parser = token)]
        tokens: Vec<ProductToken>,
    },
    /// Shows what crawlers will misread. Exit status 0: nothing, 1: something, 2: no answer.
    Lint {
        /// The file.
        #[command(flatten)]
        source: Source,
    },
}

impl Command {
    /// The file.
    pub(super) fn source(&self) -> &Source {
        match self {
            Self::Check { source, .. } | Self::Explain { source, .. } | Self::Lint { source } => {
                source
            }
        }
    }
}

fn token(text: &str) -> Result<ProductToken, etiquette_robots::InvalidToken> {
    text.parse()
}
