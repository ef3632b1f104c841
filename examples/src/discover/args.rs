//! The command line.

use clap::{Parser, ValueEnum};
use etiquette_discovery::plan::Want;
use http::Uri;

use crate::cli::Named;

/// Lists what a site offers machines: APIs, feeds, sitemaps, llms.txt.
///
/// Costs each site its robots.txt and its start page. Well-known addresses are guessed at only with `--want` and
/// `--max-probes`. Without a URL it asks a small site that it serves to itself.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "discover")]
#[non_exhaustive]
pub struct Args {
    /// The start pages of the sites.
    #[arg(value_name = "URL")]
    pub urls: Vec<Uri>,
    /// Who asks.
    #[command(flatten)]
    pub named: Named,
    /// What is worth a probe. Can be given several times.
    #[arg(long, value_name = "KIND")]
    pub want: Vec<Probe>,
    /// How many well-known addresses of a site are guessed at, at most 3.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_probes: u8,
    /// Allows targets on loopback and in private networks.
    #[arg(long)]
    pub allow_private: bool,
    /// Writes one line of JSON for each site.
    #[arg(long)]
    pub json: bool,
}

/// What is worth a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Probe {
    /// /.well-known/api-catalog
    Api,
    /// /llms.txt
    Llms,
    /// /sitemap.xml
    Sitemap,
}

impl From<Probe> for Want {
    fn from(probe: Probe) -> Self {
        match probe {
            Probe::Api => Self::Api,
            Probe::Llms => Self::Llms,
            Probe::Sitemap => Self::Sitemap,
        }
    }
}
