//! The identity itself: what the builder has checked, handed out.

use std::fmt;
use std::sync::Arc;

use etiquette_robots::ProductToken;
use http::HeaderValue;

use super::judge::{self, Verdict};
use crate::PurposeKind;

/// Who is asking. Made by [`Identity::builder`]; cloning is cheap.
///
/// ```
/// use etiquette_core::{Identity, PurposeKind};
///
/// let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
///     .contact("bot@example.com")
///     .build()?;
/// assert_eq!(
///     identity.user_agent(PurposeKind::Crawl),
///     "Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html; bot@example.com)"
/// );
/// # Ok::<(), etiquette_core::vocabulary::identity::InvalidIdentity>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Identity(pub(super) Arc<Inner>);

#[derive(PartialEq)]
pub(super) struct Inner {
    pub(super) token: ProductToken,
    pub(super) user_token: Option<ProductToken>,
    pub(super) version: String,
    pub(super) url: String,
    pub(super) contact: Option<String>,
    pub(super) purpose: Option<String>,
    pub(super) crawl: HeaderValue,
    pub(super) user: Option<HeaderValue>,
    pub(super) from: Option<HeaderValue>,
    pub(super) help: Arc<str>,
    pub(super) max_len: usize,
    pub(super) renders: bool,
}

impl Identity {
    /// The token for crawls, by which robots.txt names this client.
    #[must_use]
    pub fn token(&self) -> &ProductToken {
        &self.0.token
    }

    /// The token for pages that a person asked for.
    #[must_use]
    pub fn user_token(&self) -> Option<&ProductToken> {
        self.0.user_token.as_ref()
    }

    /// The token for a purpose; that for crawls where no other was given.
    #[must_use]
    pub fn token_for(&self, purpose: PurposeKind) -> &ProductToken {
        match (purpose, &self.0.user_token) {
            (PurposeKind::UserFetch, Some(token)) => token,
            _ => &self.0.token,
        }
    }

    /// The User-Agent value for a purpose; that for crawls where no user token was given.
    #[must_use]
    pub fn user_agent(&self, purpose: PurposeKind) -> &HeaderValue {
        match (purpose, &self.0.user) {
            (PurposeKind::UserFetch, Some(value)) => value,
            _ => &self.0.crawl,
        }
    }

    /// The From value, if a contact was given. Only crawls send it.
    #[must_use]
    pub fn from(&self) -> Option<&HeaderValue> {
        self.0.from.as_ref()
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// The link to the description page.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// The operator's mail address.
    #[must_use]
    pub fn contact(&self) -> Option<&str> {
        self.0.contact.as_deref()
    }

    /// What the client is for.
    #[must_use]
    pub fn purpose(&self) -> Option<&str> {
        self.0.purpose.as_deref()
    }

    /// Where the operator of this client can be reached: the link and, if given, the mail address. Refusals carry it.
    #[must_use]
    pub fn help(&self) -> &Arc<str> {
        &self.0.help
    }

    /// What `value` would say about this client, whichever of its tokens it uses.
    #[must_use]
    pub fn judge(&self, value: &[u8]) -> Verdict {
        let tokens = [Some(&self.0.token), self.0.user_token.as_ref()];
        let tokens = tokens.into_iter().flatten().map(ProductToken::as_str);
        judge::judge(value, tokens, self.0.max_len, self.0.renders)
    }

    /// What `value` would say about a request with `purpose`: it must use the token of that purpose, since that is the
    /// one that robots.txt is asked for.
    #[must_use]
    pub fn judge_for(&self, purpose: PurposeKind, value: &[u8]) -> Verdict {
        let token = self.token_for(purpose).as_str();
        judge::judge(value, [token], self.0.max_len, self.0.renders)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("user_agent", &self.0.crawl)
            .field("user_token", &self.0.user_token)
            .finish_non_exhaustive()
    }
}
