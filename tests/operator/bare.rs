//! The other way round: a client without the layers breaks every promise, and the log shows it.

use bytes::Bytes;
use etiquette_examples::site;
use etiquette_tests::promises::{Outcome, Promises};
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;

use crate::client::TOKEN;

#[tokio::test]
async fn a_client_without_the_layers_breaks_every_promise() {
    let site = site::serve().await.unwrap();
    let client = legacy::Client::builder(TokioExecutor::new()).build_http();
    for _ in 0..2 {
        for path in [
            "/",
            "/private/diary.html",
            "/busy.html",
            "/busy.html",
            "/news.html",
        ] {
            let request = Request::get(site.url(path)).body(Empty::<Bytes>::new());
            let response = client.request(request.unwrap()).await.unwrap();
            response.into_body().collect().await.unwrap();
        }
        site.log().next_run();
    }
    let promises = Promises::check(&site.log().entries(), &site::expected(TOKEN, false));
    for check in promises.checks() {
        // Nothing came after the pause, since there was none.
        let unseen = check.promise == "slower afterwards";
        let expected = if unseen {
            Outcome::Unseen
        } else {
            Outcome::Broken
        };
        assert_eq!(check.outcome, expected, "{check}");
    }
    assert!(promises.any_broken());
}
