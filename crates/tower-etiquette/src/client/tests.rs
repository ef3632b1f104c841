//! The client over sites in memory; what they do not serve goes to real connections.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::LOCATION;
use http::{Request, Response};
use http_body_util::Full;
use hyper_util::rt::TokioExecutor;
use tower::{ServiceExt, service_fn};

use super::connect::Connector;
use super::error::ConnectError;
use super::{Client, ClientBuilder, RequestBody};
use crate::{Body, BoxError, BoxedService, HostPolicy, Hosts, Identity};

/// Addresses that are not public: one or more of each form.
const NOT_PUBLIC: &[&str] = &[
    // Private use, and what carriers share.
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "[fc00::1]",
    // Loopback.
    "127.0.0.1",
    "[::1]",
    // Link-local.
    "169.254.1.1",
    "[fe80::1]",
    // Multicast and broadcast.
    "224.0.0.1",
    "255.255.255.255",
    "[ff02::1]",
    // Unspecified.
    "0.0.0.0",
    "[::]",
    // The metadata services of clouds.
    "169.254.169.254",
    "168.63.129.16",
    "[fd00:ec2::254]",
    // IPv4 in IPv6: mapped, compatible, translated, NAT64, 6to4.
    "[::ffff:10.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:10.0.0.1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::10.0.0.1]",
    "[2002:7f00:1::]",
];

/// Spellings of loopback that only name resolution tells.
const SPELT_OTHERWISE: &[&str] = &[
    "localhost",
    "127.1",
    "2130706433",
    "0x7f000001",
    "127.0.0.1.",
];

type Site = BoxedService<RequestBody>;

fn identity() -> Identity {
    Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
        .user_token("Example-User")
        .build()
        .unwrap()
}

fn builder() -> ClientBuilder {
    let policy = HostPolicy::new()
        .min_delay(Duration::ZERO)
        .latency_factor(0);
    Client::builder(identity()).hosts(Hosts::new(policy))
}

fn respond(status: u16, location: Option<&str>, body: &str) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::<Bytes>::from(body.to_owned())));
    *response.status_mut() = status.try_into().unwrap();
    if let Some(location) = location {
        let location = location.parse().unwrap();
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// What `serve` answers; where it gives nothing, a connection is made as the settings of `builder` have it.
fn over(
    builder: ClientBuilder,
    serve: impl Fn(&Request<RequestBody>) -> Option<Response<Body>> + Clone + Send + Sync + 'static,
) -> Client {
    let connector = Connector::new(builder.settings().clone()).unwrap();
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
    let http: Site = BoxedService::new(http);
    builder.over(service_fn(move |request: Request<RequestBody>| {
        let (served, http) = (serve(&request), http.clone());
        async move {
            match served {
                Some(response) => Ok::<_, BoxError>(response),
                None => http.oneshot(request).await,
            }
        }
    }))
}

/// The address that a request was refused for.
async fn refused(client: &Client, url: &str) -> String {
    let error = client.get(url).await.expect_err(url);
    let Some(crate::Refusal::Address(leaf)) = error.refusal() else {
        panic!("{url}: {error:?}");
    };
    assert_eq!(
        leaf.contact.as_deref(),
        Some("https://www.example.com/bot.html")
    );
    assert_eq!(error.refusal().unwrap().kind(), "address_not_public");
    assert!(leaf.origin.is_some(), "{url}");
    leaf.address.to_string()
}

fn written(host: &str) -> String {
    let address = host.trim_matches(['[', ']']).parse();
    let address: std::net::IpAddr = address.unwrap();
    address.to_string()
}

#[tokio::test]
async fn no_address_that_is_not_public_is_asked() {
    for host in NOT_PUBLIC {
        let address = written(host);
        let client = over(builder().public_addresses_only(true), |_| None);
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}/latest/meta-data");
            assert_eq!(refused(&client, &url).await, address, "{url}");
        }
    }
    for host in SPELT_OTHERWISE {
        let client = over(builder().public_addresses_only(true), |_| None);
        let address = refused(&client, &format!("http://{host}/")).await;
        assert!(
            address == "127.0.0.1" || address == "::1",
            "{host} {address}"
        );
    }
}

#[tokio::test]
async fn nor_is_one_that_a_name_leads_to() {
    for host in NOT_PUBLIC {
        let address = written(host);
        let client = over(
            builder().public_addresses_only(true).resolve(
                "name.example",
                80,
                address.parse().unwrap(),
            ),
            |_| None,
        );
        assert_eq!(refused(&client, "http://name.example/").await, address);
    }
}

#[tokio::test]
async fn nor_is_one_that_a_redirect_leads_to() {
    for host in NOT_PUBLIC.iter().chain(SPELT_OTHERWISE) {
        let target = format!("http://{host}/inside");
        let client = over(builder().public_addresses_only(true), move |request| {
            let here = request.uri().host() == Some("site.example");
            let location = (request.uri().path() == "/").then_some(target.as_str());
            here.then(|| respond(if location.is_some() { 302 } else { 404 }, location, ""))
        });
        refused(&client, "http://site.example/").await;
    }
}

#[tokio::test(start_paused = true)]
async fn nor_is_one_that_a_robots_txt_redirects_to() {
    for host in NOT_PUBLIC.iter().chain(SPELT_OTHERWISE) {
        let asked = Arc::new(Mutex::new(0));
        let (target, seen) = (format!("http://{host}/robots.txt"), Arc::clone(&asked));
        let client = over(builder().public_addresses_only(true), move |request| {
            (request.uri().host() == Some("site.example")).then(|| {
                assert_eq!(request.uri().path(), "/robots.txt");
                *seen.lock().unwrap() += 1;
                respond(302, Some(&target), "")
            })
        });
        // The site was asked, and its redirect leads nowhere: it is not asked again for each page.
        for path in ["/a", "/b"] {
            refused(&client, &format!("http://site.example{path}")).await;
        }
        assert_eq!(*asked.lock().unwrap(), 1, "{host}");
    }
}

/// What was never asked has not failed: neither rules nor pace remember the address that a name led to by mistake.
#[tokio::test(start_paused = true)]
async fn a_name_that_leads_elsewhere_later_is_asked_at_once() {
    let private = Arc::new(Mutex::new(true));
    let leads = Arc::clone(&private);
    let client =
        builder()
            .public_addresses_only(true)
            .over(service_fn(move |_: Request<RequestBody>| {
                let private = *leads.lock().unwrap();
                async move {
                    if private {
                        let address = "10.0.0.1".parse().unwrap();
                        return Err(BoxError::from(ConnectError::NotPublic(address)));
                    }
                    Ok(respond(200, None, ""))
                }
            }));
    let start = tokio::time::Instant::now();
    for _ in 0..5 {
        assert_eq!(refused(&client, "http://site.example/").await, "10.0.0.1");
    }
    *private.lock().unwrap() = false;
    let page = client.get("http://site.example/").await.unwrap();
    assert_eq!(page.status(), 200);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn without_the_switch_loopback_is_asked() {
    // A port that was free a moment ago: there is an answer of the system, not of the client.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let client = over(builder(), |_| None);
    let error = client.get(&format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(
        error.unwrap_err().refusal().unwrap().kind(),
        "robots_unreachable"
    );
}

#[cfg(feature = "signatures")]
mod signed {
    use std::convert::Infallible;

    use etiquette_core::signing::verify;
    use http::header::RETRY_AFTER;
    use http::{HeaderMap, Uri};

    use super::*;
    use crate::sign::{SignLayer, Signer, SigningKey};
    use crate::{Purpose, Session};

    /// Requests of a client, as a site in memory saw them.
    type Seen = Arc<Mutex<Vec<(Uri, HeaderMap)>>>;

    /// A site whose `/` redirects to another host, where the page is busy once.
    fn noting(
        seen: &Seen,
    ) -> impl Fn(&Request<RequestBody>) -> Result<Response<Body>, Infallible> + Clone + use<> {
        let seen = Arc::clone(seen);
        move |request| {
            let uri = request.uri();
            let mut seen = seen.lock().unwrap();
            let again = seen.iter().any(|(other, _)| other == uri);
            seen.push((uri.clone(), request.headers().clone()));
            Ok(match (uri.host(), uri.path()) {
                (_, "/robots.txt") => respond(200, None, ""),
                (Some("site.example"), _) => respond(302, Some("https://other.example/page"), ""),
                _ if again => respond(200, None, "a page"),
                _ => {
                    let mut busy = respond(429, None, "");
                    busy.headers_mut().insert(RETRY_AFTER, 1.into());
                    busy
                }
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_attempt_is_signed_innermost() {
        let (key, _) = SigningKey::generate().unwrap();
        let public = key.public().clone();
        let signer = Signer::new(key, "https://www.example.com").unwrap();
        for signs in [true, false] {
            let seen = Seen::default();
            let site = noting(&seen);
            let mut builder = builder();
            if signs {
                builder = builder.sign(SignLayer::new(signer.clone().nonce(true)));
            }
            let client = builder.over(service_fn(move |request: Request<RequestBody>| {
                let response = site(&request);
                async move { response }
            }));
            let start = "http://site.example/".parse().unwrap();
            let grant = Session::new().grant(&start).unwrap();
            let page = client
                .get_for(&start.to_string(), Purpose::UserFetch(grant))
                .await
                .unwrap();
            assert_eq!(page.status(), 200);
            let seen = seen.lock().unwrap();
            let targets: Vec<_> = seen.iter().map(|(uri, _)| uri.to_string()).collect();
            assert_eq!(
                targets,
                [
                    "http://site.example/robots.txt",
                    "http://site.example/",
                    "https://other.example/robots.txt",
                    "https://other.example/page",
                    // After a pause the rules are read anew.
                    "https://other.example/robots.txt",
                    "https://other.example/page",
                ]
            );
            let mut signatures = Vec::new();
            for (uri, headers) in seen.iter() {
                if !signs {
                    assert!(!headers.contains_key("signature"), "{uri}");
                    continue;
                }
                // The paused clock is ahead of the system's by the second of the pause.
                let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + 10;
                let outcome = verify(&http::Method::GET, uri, headers, now, |agent, keyid| {
                    assert_eq!(
                        (agent, keyid),
                        ("https://www.example.com", public.thumbprint())
                    );
                    Some(public.clone())
                });
                assert_eq!(outcome.kind(), "verified", "{uri} {outcome:?}");
                signatures.push(headers["signature"].to_str().unwrap().to_owned());
            }
            signatures.sort();
            signatures.dedup();
            assert_eq!(signatures.len(), if signs { 6 } else { 0 });
        }
    }
}
