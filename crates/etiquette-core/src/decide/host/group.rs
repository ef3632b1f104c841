//! Which origins share one budget.
//!
//! **Scope**: budgets alone. robots.txt is one file for each scheme, host and port whatever shares a budget (RFC 9309,
//! 2.3).

use std::fmt;
use std::sync::Arc;

use crate::Origin;

/// Which origins share one budget. robots.txt is always read for each origin.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum GroupBy {
    /// The host name, whatever scheme and port: most likely one machine. The default.
    #[default]
    Host,
    /// The host name with its port, where that is not the scheme's default.
    Authority,
    /// The registrable domain by the public suffix list: `a.example.com` and `b.example.com` are one site's, and so are
    /// `a.example.co.uk` and `b.example.co.uk`; `a.github.io` and `b.github.io` are not, because the list knows that
    /// anybody can have a name there. Addresses, public suffixes themselves and names under a suffix that the list does
    /// not know are grouped by host.
    ///
    /// The list is compiled in, as old as the `psl` crate of the build: `cargo update -p psl` renews it. What an old list
    /// does not know yet makes a group larger, which is slower and safe. Processes that share a store should have the
    /// same one. For a list of your own, or one that is read at run time, there is [`GroupBy::function`].
    #[cfg(feature = "public-suffix")]
    RegistrableDomain,
    /// A name that a function gives to the origin, for example an address from a table.
    Function(Arc<dyn Fn(&Origin) -> String + Send + Sync>),
}

impl GroupBy {
    /// Groups by the name that `f` gives to an origin.
    #[must_use]
    pub fn function(f: impl Fn(&Origin) -> String + Send + Sync + 'static) -> Self {
        Self::Function(Arc::new(f))
    }

    /// Hands the group's name to `f`; borrowed where it stands in the origin.
    pub fn name<T>(&self, origin: &Origin, f: impl FnOnce(&str) -> T) -> T {
        match self {
            Self::Host => f(origin.host()),
            Self::Authority => match origin.explicit_port() {
                Some(port) => f(&format!("{}:{port}", origin.host())),
                None => f(origin.host()),
            },
            #[cfg(feature = "public-suffix")]
            Self::RegistrableDomain => f(registrable(origin.host())),
            Self::Function(name) => f(&name(origin)),
        }
    }
}

/// The public suffix of a host and the label before it, or the whole host where there is no such thing.
#[cfg(feature = "public-suffix")]
fn registrable(host: &str) -> &str {
    let domain = psl::domain(host.as_bytes()).filter(|domain| domain.suffix().is_known());
    // It is the end of the host, and labels begin at a character of their own.
    domain
        .and_then(|domain| host.get(host.len() - domain.as_bytes().len()..))
        .unwrap_or(host)
}

impl fmt::Debug for GroupBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "Host",
            Self::Authority => "Authority",
            #[cfg(feature = "public-suffix")]
            Self::RegistrableDomain => "RegistrableDomain",
            Self::Function(_) => "Function(..)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_groups() {
        let name = |by: &GroupBy, uri: &str| {
            let origin = Origin::of(&uri.parse().unwrap()).unwrap();
            by.name(&origin, str::to_owned)
        };
        assert_eq!(name(&GroupBy::Host, "https://A.example:8443/"), "a.example");
        let authority = GroupBy::Authority;
        assert_eq!(
            name(&authority, "https://a.example:8443/"),
            "a.example:8443"
        );
        assert_eq!(name(&authority, "http://a.example:80/"), "a.example");
        #[cfg(feature = "public-suffix")]
        for (uri, group) in [
            ("https://a.example.com:8443/", "example.com"),
            ("http://b.c.EXAMPLE.com/", "example.com"),
            ("http://example.com/", "example.com"),
            ("http://www.example.co.uk/", "example.co.uk"),
            // Anybody can have a name below these.
            ("http://a.github.io/", "a.github.io"),
            ("http://x.a.github.io/", "a.github.io"),
            // A wildcard and its exception.
            ("http://a.b.c.kawasaki.jp/", "b.c.kawasaki.jp"),
            ("http://a.city.kawasaki.jp/", "city.kawasaki.jp"),
            (
                "http://www.xn--85x722f.xn--55qx5d.cn/",
                "xn--85x722f.xn--55qx5d.cn",
            ),
            // By host: suffixes themselves, unknown ones, addresses.
            ("http://co.uk/", "co.uk"),
            ("http://github.io/", "github.io"),
            ("http://a.corp.internal-name/", "a.corp.internal-name"),
            ("http://localhost/", "localhost"),
            ("http://192.0.2.1/", "192.0.2.1"),
            ("http://[2001:db8::1]/", "[2001:db8::1]"),
        ] {
            assert_eq!(name(&GroupBy::RegistrableDomain, uri), group, "{uri}");
        }
        let function = GroupBy::function(|origin| format!("{}!", origin.host()));
        assert_eq!(name(&function, "http://a.example/"), "a.example!");
    }
}
