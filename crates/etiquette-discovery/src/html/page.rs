//! What a page links to and what it says to robots.

use http::Uri;

/// Links beyond this many are not kept: twenty times what a large page has.
pub const MAX_LINKS: usize = 10_000;

/// What a page links to and what it says to robots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub(super) base: Uri,
    pub(super) links: Vec<PageLink>,
    pub(super) anchors: Vec<Anchor>,
    pub(super) robots: Vec<MetaRobots>,
    pub(super) truncated: bool,
}

impl Page {
    /// What the page's references are relative to: its `<base href>`, else its own URI.
    #[must_use]
    pub fn base(&self) -> &Uri {
        &self.base
    }

    /// The `<link>` elements with a usable `href`, in document order.
    #[must_use]
    pub fn links(&self) -> &[PageLink] {
        &self.links
    }

    /// The `<a>` and `<area>` elements with a usable `href`, in document order, repeated targets included.
    #[must_use]
    pub fn anchors(&self) -> &[Anchor] {
        &self.anchors
    }

    /// The targets that a crawler may follow: [`anchors`](Self::anchors) without `rel=nofollow`, and none at all when
    /// the page tells `token` or all robots not to follow its links.
    ///
    /// `token` is the crawler's product token, without regard to case.
    pub fn followable<'a>(&'a self, token: &str) -> impl Iterator<Item = &'a Uri> + use<'a> {
        let page_wide = self.no_follow(token);
        self.anchors
            .iter()
            .filter(move |anchor| !page_wide && !anchor.no_follow())
            .map(|anchor| &anchor.uri)
    }

    /// Whether a `<meta>` for `token` or for all robots says `nofollow` or `none`.
    #[must_use]
    pub fn no_follow(&self, token: &str) -> bool {
        self.says(token, "nofollow")
    }

    /// Whether a `<meta>` for `token` or for all robots says `noindex` or `none`.
    #[must_use]
    pub fn no_index(&self, token: &str) -> bool {
        self.says(token, "noindex")
    }

    fn says(&self, token: &str, rule: &str) -> bool {
        self.robots
            .iter()
            .filter(|meta| meta.name == "robots" || meta.name.eq_ignore_ascii_case(token))
            .flat_map(|meta| meta.content.split([',', ' ']))
            .map(str::trim)
            .any(|said| said.eq_ignore_ascii_case(rule) || said.eq_ignore_ascii_case("none"))
    }

    /// Each `<meta name content>` that may speak to a robot: the name in lower case, the content as written. These are
    /// `robots` and every name without a colon or dot in it; which of them name a robot, the caller's token decides.
    #[must_use]
    pub fn meta_robots(&self) -> &[MetaRobots] {
        &self.robots
    }

    /// Whether the page was longer than what was read or kept.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }
}

/// A `<link>`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageLink {
    /// Where it leads, absolute, without a fragment.
    pub uri: Uri,
    /// The `rel` attribute in lower case.
    pub rel: String,
    /// The `type` attribute as written, parameters included.
    pub media_type: Option<String>,
    /// The `hreflang` attribute.
    pub hreflang: Option<String>,
    /// The `title` attribute.
    pub title: Option<String>,
}

impl PageLink {
    /// Whether `rel` holds this token; `token` in lower case.
    #[must_use]
    pub fn has_rel(&self, token: &str) -> bool {
        has_token(&self.rel, token)
    }
}

/// An `<a>` or `<area>`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Anchor {
    /// Where it leads, absolute, without a fragment.
    pub uri: Uri,
    /// The `rel` attribute in lower case, empty without one.
    pub rel: String,
}

impl Anchor {
    /// Whether `rel` holds this token; `token` in lower case.
    #[must_use]
    pub fn has_rel(&self, token: &str) -> bool {
        has_token(&self.rel, token)
    }

    /// Whether the page does not vouch for the target: `rel=nofollow`.
    #[must_use]
    pub fn no_follow(&self) -> bool {
        self.has_rel("nofollow")
    }
}

fn has_token(rel: &str, token: &str) -> bool {
    rel.split_ascii_whitespace().any(|one| one == token)
}

/// A `<meta name content>` that may speak to a robot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetaRobots {
    /// Whom it speaks to, in lower case: `robots` or a crawler's name.
    pub name: String,
    /// What it says, as written.
    pub content: String,
}
