//! The whole stack around a reqwest client that is configured as its user likes.
//!
//! The adapter switches off what reqwest would do behind the back of the layers: redirects, retries, decompression.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use rustls::{ClientConfig, RootCertStore};
use tower::ServiceExt;
use tower_etiquette::identity::Identity;
use tower_etiquette::{BoxError, BoxedService, Etiquette, Facts, HostPolicy, Hosts, Refusal};
use tower_etiquette_reqwest::ReqwestService;

use crate::site;

/// Asks the small site for a page twice, for one that is busy, and for one that is disallowed; writes to `out` what
/// came of it, and what the site saw.
///
/// # Errors
/// When the client cannot be built, or the site cannot be served or does not answer.
pub async fn run(out: &mut (dyn Write + Send)) -> Result<(), BoxError> {
    let site = site::serve().await?;

    let identity =
        Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
    let hosts = Hosts::new(HostPolicy::new().min_delay(Duration::from_millis(100)));
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls()?)
        .connect_timeout(Duration::from_secs(10))
        .no_proxy();
    let client: BoxedService<Empty<Bytes>> = Etiquette::new(identity)
        .hosts(hosts)
        .boxed(ReqwestService::from_builder(builder)?);

    for path in [
        "/about.html",
        "/about.html",
        "/busy.html",
        "/private/diary.html",
    ] {
        let request = Request::get(site.url(path)).body(Empty::new())?;
        match client.clone().oneshot(request).await {
            Ok(response) => {
                let facts = Facts::of(&response).cloned().unwrap_or_default();
                let status = response.status();
                let bytes = response.into_body().collect().await?.to_bytes().len();
                writeln!(
                    out,
                    "{path}: {status}, {bytes} bytes, waited {:.1?}, {} attempts",
                    facts.waited(),
                    facts.attempts()
                )?;
            }
            Err(error) => {
                let refusal = Refusal::find(&*error).cloned().ok_or(error)?;
                writeln!(out, "{path}: {}", refusal.explain())?;
            }
        }
    }

    site::write_log(&site, out)?;
    Ok(())
}

/// TLS with the Mozilla roots. Its provider is named: where two of them meet in one program, there is no default.
fn tls() -> Result<ClientConfig, rustls::Error> {
    let roots = webpki_roots::TLS_SERVER_ROOTS.to_vec();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore { roots })
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}
