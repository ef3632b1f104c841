//! Who may be crawled under which name.
//!
//! A site on the open network must be able to see who comes: a name, a version and a page that explains it, none of
//! them made up. Loopback and private networks are crawled only when the user says so, since a list of URLs from
//! elsewhere could otherwise be turned against the user's own network.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;
use tower_etiquette::Origin;

use super::Args;
use crate::cli::belongs_to_somebody;

/// Why the crawl does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadTarget {
    /// The URL is not one that can be crawled.
    NotHttp(String),
    /// The URL leads to loopback or a private network, and `--allow-private` is not given.
    Private(String),
    /// The URL does not lead to loopback, and these options are missing.
    Nameless(String, Vec<&'static str>),
    /// The URL does not lead to loopback, and the option has a placeholder where its reader needs a real host.
    Placeholder(&'static str, String),
}

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHttp(url) => write!(f, "{url} is not an absolute http or https URL"),
            Self::Private(url) => write!(
                f,
                "{url} leads to loopback or a private network; --allow-private allows it"
            ),
            Self::Nameless(url, missing) => f.write_str(&belongs_to_somebody(url, missing)),
            Self::Placeholder(option, value) => write!(
                f,
                "{option} {value} is a placeholder that leads nowhere; sites need a real one"
            ),
        }
    }
}

impl Error for BadTarget {}

/// Where the addresses of a target lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reach {
    /// One of them is loopback or private.
    private: bool,
    /// All of them are loopback.
    loopback: bool,
}

/// Checks the targets of `args`, and the names for them. Tells whether one of them is not loopback.
///
/// # Errors
/// [`BadTarget`] for the first target that may not be crawled like this.
pub(super) async fn check(args: &Args) -> Result<bool, BadTarget> {
    let mut elsewhere = false;
    for uri in &args.urls {
        let url = || uri.to_string();
        let origin = Origin::of(uri).map_err(|_| BadTarget::NotHttp(url()))?;
        let reach = reach(&addresses(&origin, args).await);
        if reach.private && !args.allow_private {
            return Err(BadTarget::Private(url()));
        }
        if !reach.loopback {
            let missing = args.named.missing();
            if !missing.is_empty() {
                return Err(BadTarget::Nameless(url(), missing));
            }
            genuine(args)?;
            elsewhere = true;
        }
    }
    Ok(elsewhere)
}

async fn addresses(origin: &Origin, args: &Args) -> Vec<IpAddr> {
    let host = origin.host();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(addr) = literal.parse() {
        return vec![addr];
    }
    let given = args
        .resolve
        .iter()
        .find(|r| r.host == host && r.port == origin.port());
    if let Some(given) = given {
        return vec![given.addr];
    }
    if is_local(host) {
        return vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    }
    // A name that does not resolve now is left to the crawl, which will say so.
    match tokio::net::lookup_host((host, origin.port())).await {
        Ok(found) => found.map(|addr| addr.ip()).collect(),
        Err(_) => Vec::new(),
    }
}

fn reach(addresses: &[IpAddr]) -> Reach {
    Reach {
        private: addresses.iter().any(|&addr| is_private(addr)),
        loopback: !addresses.is_empty()
            && addresses
                .iter()
                .all(|addr| addr.to_canonical().is_loopback()),
    }
}

fn is_private(addr: IpAddr) -> bool {
    match addr.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.to_bits().to_be_bytes();
            let carrier = a == 100 && (64..128).contains(&b);
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || carrier
                || a == 0
        }
        IpAddr::V6(v6) => {
            v6 == Ipv6Addr::LOCALHOST
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.is_multicast()
        }
    }
}

fn genuine(args: &Args) -> Result<(), BadTarget> {
    if let Some(link) = &args.named.info_url {
        let uri = link.parse::<Uri>().ok();
        // Without a scheme, `bot.html` would pass for a host.
        let uri = uri.filter(|uri| uri.scheme().is_some());
        let host = uri.as_ref().and_then(Uri::host);
        if host.is_none_or(is_placeholder) {
            return Err(BadTarget::Placeholder("--info-url", link.clone()));
        }
    }
    if let Some(mailbox) = &args.named.contact {
        let domain = mailbox.rsplit('@').next().unwrap_or_default();
        if is_placeholder(domain.trim_end_matches('>')) {
            return Err(BadTarget::Placeholder("--contact", mailbox.clone()));
        }
    }
    Ok(())
}

/// Whether a host is reserved for documentation and tests (RFC 2606, RFC 6761), or leads back to the machine that
/// names it.
fn is_placeholder(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(addr) = literal.parse::<IpAddr>() {
        return is_private(addr);
    }
    let mut labels = host.rsplit('.');
    let last = labels.next().unwrap_or_default();
    // example.com and its siblings, and what stands below them: the label before a top-level domain.
    let example = labels.next() == Some("example");
    example || matches!(last, "" | "example" | "invalid" | "test") || is_local(&host)
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn args(rest: &[&str]) -> Args {
        Args::try_parse_from(["crawl"].iter().chain(rest)).unwrap()
    }

    async fn checked(rest: &[&str]) -> Result<(), BadTarget> {
        check(&args(rest)).await.map(drop)
    }

    #[tokio::test]
    async fn whoever_is_not_this_machine_may_look_the_name_up() {
        for (urls, elsewhere) in [
            (&["http://127.0.0.1/", "http://localhost/"][..], false),
            (&["http://127.0.0.1/", PUBLIC][..], true),
            (&["http://10.0.0.1/"][..], true),
        ] {
            let rest = [urls, &["--allow-private"], NAME].concat();
            assert_eq!(check(&args(&rest)).await, Ok(elsewhere), "{urls:?}");
        }
    }

    const PUBLIC: &str = "http://192.0.2.1/";
    const NAME: &[&str] = &[
        "--token=T",
        "--bot-version=1",
        "--info-url=https://bot.acme.org/",
    ];

    #[tokio::test]
    async fn loopback_and_private_targets_need_leave() {
        for url in [
            "http://127.0.0.1:8080/",
            "http://localhost/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://10.1.2.3/",
            "http://192.168.0.1/",
            "http://172.16.0.1/",
            "http://169.254.169.254/latest/",
            "http://100.64.0.1/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
            "http://0.0.0.0/",
        ] {
            let refused = checked(&[&[url], NAME].concat()).await;
            assert!(
                matches!(refused, Err(BadTarget::Private(_))),
                "{url} {refused:?}"
            );
            let allowed = checked(&[&[url, "--allow-private"], NAME].concat()).await;
            assert_eq!(allowed, Ok(()), "{url}");
        }
        let resolved = [
            "http://site.acme.org/",
            "--resolve=site.acme.org:80:127.0.0.1",
        ];
        assert!(matches!(
            checked(&resolved).await,
            Err(BadTarget::Private(_))
        ));
        let named = [&resolved[..], &["--allow-private"]].concat();
        assert_eq!(checked(&named).await, Ok(()));
    }

    #[tokio::test]
    async fn others_need_a_name() {
        let nameless = |missing: &[&'static str]| {
            Err(BadTarget::Nameless(PUBLIC.to_owned(), missing.to_vec()))
        };
        assert_eq!(
            checked(&[PUBLIC]).await,
            nameless(&["--token", "--bot-version", "--info-url"])
        );
        assert_eq!(
            checked(&[PUBLIC, "--token=T", "--info-url=https://bot.acme.org/"]).await,
            nameless(&["--bot-version"])
        );
        // A private network has an operator too.
        let private = checked(&["http://10.0.0.1/", "--allow-private"]).await;
        assert!(matches!(private, Err(BadTarget::Nameless(..))));
        assert_eq!(checked(&[&[PUBLIC], NAME].concat()).await, Ok(()));
        assert_eq!(
            checked(&["http://127.0.0.1/", "--allow-private"]).await,
            Ok(())
        );
    }

    #[tokio::test]
    async fn a_name_is_not_made_up() {
        for link in [
            "https://www.example.com/bot.html",
            "https://example.org/",
            "https://bot.example/",
            "https://bot.invalid/",
            "https://bot.test/",
            "http://localhost/bot",
            "http://127.0.0.1/bot",
            "http://[::1]/bot",
            "http://192.168.0.7/bot",
            "bot.html",
        ] {
            let link = format!("--info-url={link}");
            let refused = checked(&[PUBLIC, "--token=T", "--bot-version=1", &link]).await;
            assert!(
                matches!(refused, Err(BadTarget::Placeholder("--info-url", _))),
                "{link} {refused:?}"
            );
        }
        for (mailbox, genuine) in [
            ("bot@example.com", false),
            ("bot@mail.example.net", false),
            ("bot@acme.invalid", false),
            ("bot@acme.org", true),
            ("bot@examples.org", true),
        ] {
            let mailbox = format!("--contact={mailbox}");
            let result = checked(&[&[PUBLIC, &mailbox], NAME].concat()).await;
            assert_eq!(result.is_ok(), genuine, "{mailbox} {result:?}");
        }
    }

    #[tokio::test]
    async fn only_http_is_crawled() {
        for url in ["ftp://acme.org/", "/x", "acme.org"] {
            assert!(matches!(
                checked(&[&[url], NAME].concat()).await,
                Err(BadTarget::NotHttp(_))
            ));
        }
    }
}
