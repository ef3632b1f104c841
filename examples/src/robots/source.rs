//! Where the file comes from.

use std::io::Read;

use clap::Parser;
use etiquette_robots::{MAX_BYTES, ProductToken, robots_url};
use tower_etiquette::client::Client;

use super::error::Error;
use crate::crawl;

/// A robots.txt on disk or on a site, and how to ask that site.
#[derive(Clone, Debug, clap::Args)]
#[non_exhaustive]
pub struct Source {
    /// A file, `-` for standard input, or any http or https URL of a site.
    #[arg(value_name = "FILE_OR_URL")]
    pub file: String,
    /// One JSON object per line.
    #[arg(long)]
    pub json: bool,
    /// The version behind the name, for a site that is not loopback.
    #[arg(long, value_name = "V")]
    pub bot_version: Option<String>,
    /// A page that says what this crawler is, for a site that is not loopback.
    #[arg(long, value_name = "U")]
    pub info_url: Option<String>,
    /// A mailbox for the operator of the site, sent as From.
    #[arg(long, value_name = "MAIL")]
    pub contact: Option<String>,
    /// Allows a site on loopback or in a private network.
    #[arg(long)]
    pub allow_private: bool,
}

impl Source {
    /// The URL of the site's robots.txt, if it is that of a site.
    #[must_use]
    pub fn site(&self) -> Option<String> {
        let lower = self.file.to_ascii_lowercase();
        let is_url = lower.starts_with("http://") || lower.starts_with("https://");
        robots_url(&self.file).filter(|_| is_url)
    }

    /// The bytes of the file, one more than counts at most, so that a cut is seen. Empty for a site that has none.
    ///
    /// A site is asked under the first of `tokens`.
    ///
    /// # Errors
    /// When there is no such file, or no answer from the site that would say what its rules are.
    pub async fn read(&self, tokens: &[ProductToken]) -> Result<Vec<u8>, Error> {
        if let Some(url) = self.site() {
            return self.fetch(&url, tokens).await;
        }
        let most = MAX_BYTES as u64 + 1;
        let mut bytes = Vec::new();
        let read = if self.file == "-" {
            std::io::stdin().lock().take(most).read_to_end(&mut bytes)
        } else {
            std::fs::File::open(&self.file).and_then(|file| file.take(most).read_to_end(&mut bytes))
        };
        read.map_err(|cause| Error::Read(self.file.clone(), cause))?;
        Ok(bytes)
    }

    async fn fetch(&self, url: &str, tokens: &[ProductToken]) -> Result<Vec<u8>, Error> {
        let options = [
            ("--token", tokens.first().map(ProductToken::as_str)),
            ("--bot-version", self.bot_version.as_deref()),
            ("--info-url", self.info_url.as_deref()),
            ("--contact", self.contact.as_deref()),
        ];
        let mut args = vec!["crawl".to_owned(), url.to_owned()];
        args.extend(
            options
                .iter()
                .filter_map(|(name, value)| Some(format!("{name}={}", (*value)?))),
        );
        if self.allow_private {
            args.push("--allow-private".to_owned());
        }
        let args = crawl::Args::try_parse_from(args).map_err(|_| Error::NotAUrl(url.to_owned()))?;
        let introduced = crawl::introduced(&args).await.map_err(Error::Site)?;
        let failed = |cause| Error::Fetch(url.to_owned(), cause);
        let client = Client::builder(introduced.identity)
            .public_addresses_only(!self.allow_private)
            .build()
            .map_err(|error| failed(error.into()))?;
        let response = client
            .get(url)
            .await
            .map_err(|error| failed(error.into()))?;
        let status = response.status();
        if status.is_client_error() && status != http::StatusCode::TOO_MANY_REQUESTS {
            return Ok(Vec::new());
        }
        if !status.is_success() {
            return Err(Error::Status(url.to_owned(), status));
        }
        let limit = 64 * MAX_BYTES;
        let body = response.into_body().bytes(limit).await;
        Ok(body.map_err(|error| failed(error.into()))?.to_vec())
    }
}
