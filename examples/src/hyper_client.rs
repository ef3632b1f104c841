//! Three layers picked by hand around hyper-util's client: a name, robots.txt, and a budget for each host.
//!
//! What is left out is not promised: nothing is cached, and a 429 is handed on instead of being tried again. The host
//! pauses after it all the same, since the budget sees it.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use tower::{ServiceBuilder, ServiceExt};
use tower_etiquette::identity::Identity;
use tower_etiquette::{
    BoxError, Facts, HostBudgetLayer, HostPolicy, Hosts, Refusal, RobotsLayer, UserAgentLayer,
};

use crate::site;

/// Asks the small site for three pages and writes to `out` what came of it, and what the site saw.
///
/// # Errors
/// When the site cannot be served, or does not answer.
pub async fn run(out: &mut (dyn Write + Send)) -> Result<(), BoxError> {
    let site = site::serve().await?;

    let identity =
        Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
    let hosts = Hosts::new(HostPolicy::new().min_delay(Duration::from_millis(100)));
    let client = ServiceBuilder::new()
        .layer(UserAgentLayer::new(identity))
        .layer(RobotsLayer::new().hosts(hosts.clone()))
        .layer(HostBudgetLayer::new(hosts))
        .service(legacy::Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>());

    for path in ["/", "/about.html", "/private/diary.html"] {
        let request = Request::get(site.url(path)).body(Empty::new())?;
        match client.clone().oneshot(request).await {
            Ok(response) => {
                let waited = Facts::of(&response).map(Facts::waited).unwrap_or_default();
                let status = response.status();
                // The host's permit is free when the body has been read to its end, or dropped.
                let bytes = response.into_body().collect().await?.to_bytes().len();
                writeln!(out, "{path}: {status}, {bytes} bytes, waited {waited:.1?}")?;
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
