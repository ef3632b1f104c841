use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::PurposeKind;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use tower_service::Service;

use super::negotiate;
use super::text::{Language, Say};
use crate::Identity;

/// Serves the page that an identity's link leads to. See the [module](super). Cloning is cheap.
#[derive(Clone, Debug)]
pub struct DescriptionPage(Arc<Told>);

/// The future of [`DescriptionPage`].
pub type PageFuture = Ready<Result<Response<Full<Bytes>>, Infallible>>;

/// What the page tells.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) token: String,
    pub(super) user_token: Option<String>,
    pub(super) version: String,
    pub(super) user_agent: String,
    /// Of page fetches for people.
    pub(super) user_fetch_user_agent: Option<String>,
    pub(super) url: String,
    pub(super) contact: Option<String>,
    pub(super) purpose: Option<String>,
    pub(super) minutes: u64,
    pub(super) seconds: u64,
    pub(super) keys: Option<String>,
}

/// Something that an operator can do, with lines to paste.
#[derive(Clone, Debug)]
pub(super) struct Advice {
    pub(super) heading: Say,
    pub(super) lines: String,
    pub(super) note: Say,
}

impl Told {
    /// The lines for robots.txt under a name.
    pub(super) fn lines(token: &str, rules: &str) -> String {
        format!("User-agent: {token}\n{rules}")
    }

    /// What an operator can do, from the mildest on.
    pub(super) fn advice(&self) -> Vec<Advice> {
        let own = |rules| Self::lines(&self.token, rules);
        let busy = "HTTP/1.1 429 Too Many Requests\nRetry-After: 3600".to_owned();
        let mut advice = vec![
            (Say::Slow, own("Crawl-delay: 10"), Say::SlowNote),
            (Say::Pause, busy, Say::PauseNote),
            (Say::Path, own("Disallow: /private/"), Say::PathNote),
            (Say::Stop, own("Disallow: /"), Say::StopNote),
        ];
        if let Some(token) = &self.user_token {
            let lines = Self::lines(token, "Disallow: /");
            advice.push((Say::People, lines, Say::PeopleNote));
        }
        let advice = advice.into_iter().map(|(heading, lines, note)| Advice {
            heading,
            lines,
            note,
        });
        advice.collect()
    }

    /// A sentence with its blanks filled in.
    pub(super) fn say(&self, language: Language, what: Say) -> String {
        language
            .say(what)
            .replace("{token}", &self.token)
            .replace("{user}", self.user_token.as_deref().unwrap_or_default())
            .replace("{minutes}", &self.minutes.to_string())
            .replace("{seconds}", &self.seconds.to_string())
    }
}

impl DescriptionPage {
    /// The page of `identity`. It says that a line in robots.txt acts within an hour and that a Crawl-delay is kept up
    /// to 300 s: the defaults of the layers.
    #[must_use]
    pub fn new(identity: &Identity) -> Self {
        let name = |purpose| {
            let name = identity.user_agent(purpose).to_str();
            name.unwrap_or_default().to_owned()
        };
        let user_token = identity.user_token();
        Self(Arc::new(Told {
            token: identity.token().to_string(),
            user_token: user_token.map(ToString::to_string),
            version: identity.version().to_owned(),
            user_agent: name(PurposeKind::Crawl),
            user_fetch_user_agent: user_token.map(|_| name(PurposeKind::UserFetch)),
            url: identity.url().to_owned(),
            contact: identity.contact().map(str::to_owned),
            purpose: identity.purpose().map(str::to_owned),
            minutes: 60,
            seconds: 300,
            keys: None,
        }))
    }

    /// Within which time a line in robots.txt acts: the longest life of a copy that the client is configured with.
    #[must_use]
    pub fn robots_act_within(mut self, life: Duration) -> Self {
        Arc::make_mut(&mut self.0).minutes = life.as_secs().div_ceil(60);
        self
    }

    /// The longest Crawl-delay that the client keeps.
    #[must_use]
    pub fn longest_crawl_delay(mut self, delay: Duration) -> Self {
        Arc::make_mut(&mut self.0).seconds = delay.as_secs();
        self
    }

    /// The link to the key directory, if requests are signed.
    #[must_use]
    pub fn key_directory(mut self, link: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).keys = Some(link.into());
        self
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = Response::new(Full::default());
            *answer.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            let allowed = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(ALLOW, allowed);
            return answer;
        }
        let language = negotiate::language(request.headers());
        let (body, kind) = if negotiate::wants_json(request.headers()) {
            (self.0.json(language), "application/json")
        } else {
            (self.0.html(language), "text/html; charset=utf-8")
        };
        let mut answer = Response::new(match *request.method() {
            Method::HEAD => Full::default(),
            _ => Full::from(body),
        });
        let headers = answer.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, kind),
            (CONTENT_LANGUAGE, language.tag()),
            (VARY, "accept, accept-language"),
            (CACHE_CONTROL, "max-age=3600"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (
                CONTENT_SECURITY_POLICY,
                "default-src 'none'; style-src 'unsafe-inline'",
            ),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        answer
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
        ready(Ok(self.answer(&request)))
    }
}

#[cfg(test)]
mod tests {
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
            let answer = page().answer(&request.body(()).unwrap());
            let headers = answer.headers();
            assert_eq!(headers["content-type"], "application/json");
            assert_eq!(headers["content-language"], language.tag());
            assert_eq!(headers["vary"], "accept, accept-language");
            let json = page().0.json(language);
            for what in [Say::Title, Say::Slow, Say::StopNote, Say::VerifyNote] {
                let said = crate::json::Text(&page().0.say(language, what)).to_string();
                assert!(json.contains(&said), "{said} {json}");
            }
        }
    }

    #[test]
    fn only_reading() {
        let request = Request::post("/bot.html").body(()).unwrap();
        assert_eq!(page().answer(&request).status(), 405);
        let request = Request::head("/bot.html").body(()).unwrap();
        let answer = page().answer(&request);
        assert_eq!(answer.headers()["vary"], "accept, accept-language");
    }
}
