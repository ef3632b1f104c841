use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use tower_service::Service;

use super::description::Description;
use super::negotiate;
use crate::Identity;
use crate::serve::get_or_head;

/// Serves the page that an identity's link leads to. See the [module](super). Cloning is cheap.
#[derive(Clone, Debug)]
#[must_use]
pub struct DescriptionPage(Arc<Description>);

/// The future of [`DescriptionPage`].
pub type PageFuture = Ready<Result<Response<Full<Bytes>>, Infallible>>;

impl DescriptionPage {
    /// The page of `identity`. It says that a line in robots.txt acts within an hour and that a Crawl-delay is kept up
    /// to 300 s: the defaults of the layers.
    pub fn new(identity: &Identity) -> Self {
        Self(Arc::new(Description {
            identity: identity.clone(),
            minutes: 60,
            seconds: 300,
            keys: None,
        }))
    }

    /// Within which time a line in robots.txt acts: the longest life of a copy that the client is configured with.
    pub fn robots_act_within(mut self, life: Duration) -> Self {
        Arc::make_mut(&mut self.0).minutes = life.as_secs().div_ceil(60);
        self
    }

    /// The longest Crawl-delay that the client keeps.
    pub fn longest_crawl_delay(mut self, delay: Duration) -> Self {
        Arc::make_mut(&mut self.0).seconds = delay.as_secs();
        self
    }

    /// The link to the key directory, if requests are signed.
    pub fn key_directory(mut self, link: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).keys = Some(link.into());
        self
    }

    fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        get_or_head(request, || {
            let language = negotiate::language(request.headers());
            let (body, content_type) = if negotiate::wants_json(request.headers()) {
                (self.0.json(language), "application/json")
            } else {
                (self.0.html(language), "text/html; charset=utf-8")
            };
            let mut response = Response::new(body.into());
            let fields = [
                (CONTENT_TYPE, content_type),
                (CONTENT_LANGUAGE, language.tag()),
                (VARY, "accept, accept-language"),
                (CACHE_CONTROL, "max-age=3600"),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (
                    CONTENT_SECURITY_POLICY,
                    "default-src 'none'; style-src 'unsafe-inline'",
                ),
            ];
            let headers = response.headers_mut();
            for (name, value) in fields {
                headers.insert(name, HeaderValue::from_static(value));
            }
            response
        })
    }
}

impl<B> Service<Request<B>> for DescriptionPage {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = PageFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> PageFuture {
        ready(Ok(self.respond(&request)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::{self, Language};
    use super::*;

    fn page() -> DescriptionPage {
        let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
            .user_token("Example-User")
            .contact("bot@example.com")
            .purpose("Prices & <availability>")
            .build()
            .unwrap();
        DescriptionPage::new(&identity)
    }

    #[test]
    fn it_tells_everything_in_each_language_and_escapes_it() {
        for language in Language::ALL {
            let html = page().0.html(language);
            for expected in [
                "User-agent: ExampleBot\nDisallow: /<",
                "User-agent: Example-User\nDisallow: /",
                "compatible; Example-User/0.1; https://www.example.com/bot.html",
                "Crawl-delay: 10",
                "Retry-After: 3600",
                "mailto:bot@example.com",
                "Prices &amp; &lt;availability&gt;",
            ] {
                assert!(html.contains(expected), "{language:?} {expected}");
            }
            for blank in ["{token}", "{user}", "{minutes}", "{seconds}"] {
                assert!(!html.contains(blank), "{language:?} {blank}");
            }
        }
    }

    #[test]
    fn it_tells_programs_in_json() {
        let page = page().robots_act_within(Duration::from_secs(61));
        let json = page.0.json(Language::English);
        assert!(
            json.contains("\"robots_txt_to_stop\":\"User-agent: ExampleBot\\nDisallow: /\\n\"")
        );
        assert!(json.contains("\"acts_within_minutes\":2"));
        assert!(json.contains("\"key_directory\":null"));
        assert!(
            json.contains("\"user_fetch_user_agent\":\"Mozilla/5.0 (compatible; Example-User/")
        );
    }

    #[test]
    fn programs_are_told_in_their_language_too() {
        for (wanted, language) in [
            ("fr-CA, en;q=0.5", Language::French),
            ("de;Q=0.9, en;q=0.5", Language::German),
            ("nl", Language::English),
        ] {
            let request = Request::get("/bot.html")
                .header("accept", "application/json")
                .header("accept-language", wanted);
            let response = page().respond(&request.body(()).unwrap());
            let headers = response.headers();
            assert_eq!(headers["content-type"], "application/json");
            assert_eq!(headers["content-language"], language.tag());
            assert_eq!(headers["vary"], "accept, accept-language");
            let json = page().0.json(language);
            for what in [text::TITLE, text::SLOW, text::STOP_NOTE, text::VERIFY_NOTE] {
                let said = crate::json::Text(&page().0.say(language, what)).to_string();
                assert!(json.contains(&said), "{said} {json}");
            }
        }
    }

    #[test]
    fn only_reading() {
        let request = Request::post("/bot.html").body(()).unwrap();
        assert_eq!(page().respond(&request).status(), 405);
        let request = Request::head("/bot.html").body(()).unwrap();
        let response = page().respond(&request);
        assert_eq!(response.headers()["vary"], "accept, accept-language");
    }
}
