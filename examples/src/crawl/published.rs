//! Whether the page behind the crawler's name helps whoever looks it up.

use std::fmt;
use std::time::Duration;

use tower_etiquette::Identity;
use tower_etiquette::client::{Client, RequestBody};
use tower_etiquette::page::{Unpublished, check_published};

use crate::cli::{chain, explain};

/// How long the page may take, its host's robots.txt and budget included. Longer waits would hold a crawl of others up
/// for the fault of one's own host.
const PATIENCE: Duration = Duration::from_secs(30);

/// The page behind the name does not help whoever looks it up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadLink {
    /// The link in the User-Agent.
    pub link: String,
    /// The token that its page should name.
    pub token: String,
    /// What was found instead.
    pub why: String,
}

impl fmt::Display for BadLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { link, token, why } = self;
        write!(
            f,
            "--info-url {link} should lead to a page that names the token {token}, and does not: {why}"
        )
    }
}

impl std::error::Error for BadLink {}

/// Asks for the page once, through `client`.
///
/// # Cancel safety
/// Dropping it drops the request.
pub(super) async fn check(identity: &Identity, client: &Client) -> Result<(), BadLink> {
    let checking = check_published::<_, RequestBody, _>(identity, client.clone());
    let why = match tokio::time::timeout(PATIENCE, checking).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => explained(&error),
        Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
    };
    Err(BadLink {
        link: identity.url().to_owned(),
        token: identity.token().to_string(),
        why,
    })
}

fn explained(error: &Unpublished) -> String {
    match error {
        Unpublished::NoResponse(cause) => format!("{error}: {}", explain(&**cause)),
        _ => chain(error),
    }
}
