//! What a grant is for: one page.

use http::Uri;
use http::uri::PathAndQuery;

use crate::{InvalidOrigin, Origin};

/// The URL of a page without its fragment, in one spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    origin: Origin,
    page: PathAndQuery,
}

impl Target {
    pub(super) fn of(url: &Uri) -> Result<Self, InvalidOrigin> {
        let page = url.path_and_query().cloned();
        Ok(Self {
            origin: Origin::of(url)?,
            page: page.unwrap_or_else(|| PathAndQuery::from_static("/")),
        })
    }
}
