//! The purpose of a request, and its kind.

use http::{Extensions, HeaderMap, Uri};

use super::api::Api;
use super::grant::UserGrant;

/// Why a request is made. A request without one is a [`Purpose::Crawl`], the strictest.
///
/// It travels as an extension of the request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Purpose {
    /// A program chose the URL: robots.txt binds it without exception.
    #[default]
    Crawl,
    /// A person chose the URL; the grant is for that one page.
    UserFetch(UserGrant),
    /// An API used under a key, within its documented limits.
    Api(Api),
}

/// The kind of a [`Purpose`], without what belongs to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PurposeKind {
    /// See [`Purpose::Crawl`].
    #[default]
    Crawl,
    /// A person chose the URL.
    UserFetch,
    /// An API used under a key, within its documented limits.
    Api,
}

/// Which groups of robots.txt bind a user fetch. A crawl obeys `*` whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RobotsScope {
    /// A group that names the user token. The default: who blocks crawlers with `*` has decided about crawling, not
    /// about one reader.
    #[default]
    NamedOnly,
    /// A group that names the user token and, where there is none, `*`.
    StarAndNamed,
}

impl Purpose {
    /// The kind that was asked for. [`Purpose::kind_of`] tells what holds for a request.
    #[must_use]
    pub fn kind(&self) -> PurposeKind {
        match self {
            Self::Crawl => PurposeKind::Crawl,
            Self::UserFetch(_) => PurposeKind::UserFetch,
            Self::Api(_) => PurposeKind::Api,
        }
    }

    /// The kind that holds for a request with these parts: an API request is a crawl where the URL is not the API's or
    /// the key is missing.
    #[must_use]
    pub fn kind_of(extensions: &Extensions, uri: &Uri, headers: &HeaderMap) -> PurposeKind {
        match extensions.get::<Self>() {
            None | Some(Self::Crawl) => PurposeKind::Crawl,
            Some(Self::UserFetch(_)) => PurposeKind::UserFetch,
            Some(Self::Api(api)) if api.covers(uri, headers) => PurposeKind::Api,
            Some(Self::Api(_)) => PurposeKind::Crawl,
        }
    }
}
