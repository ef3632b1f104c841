use std::task::{Context as TaskContext, Poll};

use etiquette_core::vocabulary::identity::{NameRefusal, NameRefused, Verdict, is_library_default};
use etiquette_core::vocabulary::purpose::{ApiKey, Attempt, GrantRefusal, GrantRefused};
use etiquette_core::{Origin, Purpose, PurposeKind, Refusal};
use http::header::{FROM, LOCATION, USER_AGENT};
use http::{HeaderMap, Request, Response, Uri};
use tower_service::Service;

use super::{ResponseFuture, UserAgentLayer};
use crate::ext::{self, Context, Facts, Visit};
use crate::macros::inner_accessors;
use crate::{BoxError, Identity};

/// The service of [`UserAgentLayer`].
#[derive(Clone, Debug)]
pub struct UserAgent<S> {
    pub(super) inner: S,
    pub(super) layer: UserAgentLayer,
}

inner_accessors!(UserAgent);

impl UserAgent<()> {
    /// Shortcut for [`UserAgentLayer::new`].
    #[must_use]
    pub fn layer(identity: Identity) -> UserAgentLayer {
        UserAgentLayer::new(identity)
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for UserAgent<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<ResBody>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        drop_foreign_key(&mut request);
        let purpose = ext::purpose(&request);
        if let Err(why) = self.layer.name(request.headers_mut(), purpose) {
            return ResponseFuture::refused(Refusal::Name(NameRefused::new(
                Origin::of(request.uri()).ok(),
                why,
                Some(self.layer.identity.help().clone()),
            )));
        }
        let step = match begin(&mut request) {
            Ok(step) => step,
            Err(why) => {
                return ResponseFuture::refused(Refusal::Grant(GrantRefused::new(
                    Origin::of(request.uri()).ok(),
                    why,
                    Some(self.layer.identity.help().clone()),
                )));
            }
        };
        Context::of(request.extensions_mut()).identity = Some(self.layer.identity.clone());
        ResponseFuture::calling(self.inner.call(request), step)
    }
}

/// A request under a grant, on its way.
#[derive(Debug)]
pub(super) struct Step {
    attempt: Attempt,
    url: Uri,
}

/// Begins the request's step of its visit, if it has a grant.
fn begin<B>(request: &mut Request<B>) -> Result<Option<Box<Step>>, GrantRefusal> {
    let Some(Purpose::UserFetch(grant)) = request.extensions().get() else {
        return Ok(None);
    };
    let attempt = grant.begin(request.method(), request.uri())?;
    // robots.txt, hops, retries and the page are one visit and take one delay of each host.
    let visit = grant.keep(Visit::default);
    visit.with(|journey| journey.one_delay = true);
    Context::of(request.extensions_mut()).visit = Some(visit);
    let url = request.uri().clone();
    Ok(Some(Box::new(Step { attempt, url })))
}

/// A redirect may have led an API request to another site, where its key is nobody's business.
fn drop_foreign_key<B>(request: &mut Request<B>) {
    let Some(Purpose::Api(api)) = request.extensions().get() else {
        return;
    };
    let ApiKey::Header(name) = api.key() else {
        return;
    };
    if Origin::of(request.uri()).is_ok_and(|origin| origin != *api.origin()) {
        let name = name.clone();
        request.headers_mut().remove(name);
    }
}

impl Step {
    /// Takes note of the answer, and says on it what a page is for that a person asked for.
    pub(super) fn answered<B>(self, response: &mut Response<B>) {
        let next = response
            .headers()
            .get(LOCATION)
            .and_then(|target| target.to_str().ok())
            .and_then(|target| etiquette_robots::resolve(&self.url.to_string(), target))
            .and_then(|target| target.parse().ok());
        self.attempt.answered(response.status(), next.as_ref());
        Facts::edit(response.extensions_mut(), |facts| facts.user_fetch = true);
    }
}

impl UserAgentLayer {
    /// Sets User-Agent and From for `purpose`, or says why the request must not be sent.
    fn name(&self, headers: &mut HeaderMap, purpose: PurposeKind) -> Result<(), NameRefusal> {
        if purpose == PurposeKind::UserFetch && self.identity.user_token().is_none() {
            return Err(NameRefusal::NoUserToken);
        }
        if self.replace || !self.keeps_callers_name(headers, purpose)? {
            headers.insert(USER_AGENT, self.identity.user_agent(purpose).clone());
        }
        match (purpose, self.identity.from()) {
            (PurposeKind::Crawl, Some(from)) => {
                headers.insert(FROM, from.clone());
            }
            // A mail address on a page that a person asked for would tell sites who that person's provider is.
            (PurposeKind::UserFetch, _) => {
                headers.remove(FROM);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the request has a name of the caller's that may stay.
    fn keeps_callers_name(
        &self,
        headers: &HeaderMap,
        purpose: PurposeKind,
    ) -> Result<bool, NameRefusal> {
        let mut names = headers.get_all(USER_AGENT).iter();
        let Some(name) = names.next() else {
            return Ok(false);
        };
        if names.next().is_some() {
            return Err(NameRefusal::SeveralNames);
        }
        if name.to_str().is_ok_and(is_library_default) {
            return Ok(false);
        }
        match self.identity.judge_for(purpose, name.as_bytes()) {
            Verdict::Ok => Ok(true),
            verdict => Err(NameRefusal::Judged(verdict)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use etiquette_core::Session;
    use http::StatusCode;
    use tower::{Layer, ServiceExt, service_fn};

    use super::*;

    const PAGE: &str = "https://site.example/p";

    fn identity() -> Identity {
        Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
            .user_token("Example-User")
            .contact("bot@example.com")
            .build()
            .unwrap()
    }

    /// A site that gives the answers in order and notes what it saw.
    #[derive(Clone, Default)]
    struct Site {
        answers: Arc<Mutex<Vec<(u16, &'static str)>>>,
        seen: Arc<Mutex<Vec<HeaderMap>>>,
    }

    impl Site {
        fn new(answers: &[(u16, &'static str)]) -> Self {
            let answers = answers.iter().rev().copied().collect();
            Self {
                answers: Arc::new(Mutex::new(answers)),
                seen: Arc::default(),
            }
        }

        async fn ask(
            &self,
            layer: &UserAgentLayer,
            request: Request<()>,
        ) -> Result<Response<()>, Refusal> {
            let site = service_fn(|request: Request<()>| {
                self.seen.lock().unwrap().push(request.headers().clone());
                let (status, target) = self.answers.lock().unwrap().pop().unwrap();
                let mut answer = Response::new(());
                *answer.status_mut() = StatusCode::from_u16(status).unwrap();
                answer
                    .headers_mut()
                    .insert(LOCATION, target.parse().unwrap());
                async move { Ok::<_, Infallible>(answer) }
            });
            let answer = layer.layer(site).oneshot(request).await;
            answer.map_err(|error| Refusal::find(&*error).unwrap().clone())
        }

        fn requests(&self) -> usize {
            self.seen.lock().unwrap().len()
        }
    }

    fn get(url: &str, purpose: Purpose) -> Request<()> {
        Request::get(url).extension(purpose).body(()).unwrap()
    }

    fn kind(answer: Result<Response<()>, Refusal>) -> Result<u16, &'static str> {
        answer
            .map(|answer| answer.status().as_u16())
            .map_err(|refusal| refusal.kind())
    }

    #[tokio::test]
    async fn each_purpose_has_its_name() {
        let layer = UserAgentLayer::new(identity());
        let site = Site::new(&[(200, ""); 2]);
        site.ask(&layer, get(PAGE, Purpose::Crawl)).await.unwrap();
        let grant = Session::new().grant(&PAGE.parse().unwrap()).unwrap();
        let mut request = get(PAGE, Purpose::UserFetch(grant));
        let address = "person@example.com".parse().unwrap();
        request.headers_mut().insert(FROM, address);
        let page = site.ask(&layer, request).await.unwrap();
        assert!(!Facts::of(&page).unwrap().may_retain());
        let seen = site.seen.lock().unwrap();
        let name = |at: usize| seen[at][USER_AGENT].to_str().unwrap();
        assert!(name(0).contains("ExampleBot/0.1"));
        assert_eq!(seen[0][FROM], "bot@example.com");
        assert!(name(1).contains("Example-User/0.1"));
        assert!(!name(1).contains("ExampleBot"));
        assert!(!seen[1].contains_key(FROM));
    }

    #[tokio::test]
    async fn a_callers_name_is_replaced_kept_or_refused() {
        let layer = UserAgentLayer::new(identity());
        let own = "ExampleBot/0.2 (https://www.example.com/bot.html)";
        for (name, expected) in [
            (
                "reqwest/0.13.5",
                Ok(
                    "Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html; bot@example.com)",
                ),
            ),
            (own, Ok(own)),
            ("Googlebot/2.1", Err("impersonation")),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0",
                Err("disguise"),
            ),
            ("", Err("unidentified")),
            // The name for pages that a person asked for is not that of crawls.
            (
                "Example-User/0.1 (https://www.example.com/bot.html)",
                Err("unidentified"),
            ),
        ] {
            let site = Site::new(&[(200, "")]);
            let mut request = get(PAGE, Purpose::Crawl);
            request
                .headers_mut()
                .insert(USER_AGENT, name.parse().unwrap());
            let answer = site.ask(&layer, request).await;
            match expected {
                Ok(sent) => assert_eq!(site.seen.lock().unwrap()[0][USER_AGENT], sent),
                Err(why) => assert_eq!((kind(answer), site.requests()), (Err(why), 0), "{name}"),
            }
        }
        let site = Site::new(&[(200, "")]);
        let mut request = get(PAGE, Purpose::Crawl);
        request
            .headers_mut()
            .append(USER_AGENT, own.parse().unwrap());
        request
            .headers_mut()
            .append(USER_AGENT, own.parse().unwrap());
        assert_eq!(kind(site.ask(&layer, request).await), Err("several_names"));
        let gateway = layer.replace_callers_name(true);
        let mut request = get(PAGE, Purpose::Crawl);
        request
            .headers_mut()
            .append(USER_AGENT, "Firefox".parse().unwrap());
        request
            .headers_mut()
            .append(USER_AGENT, own.parse().unwrap());
        assert_eq!(kind(site.ask(&gateway, request).await), Ok(200));
        assert_eq!(
            site.seen.lock().unwrap()[0]
                .get_all(USER_AGENT)
                .iter()
                .count(),
            1
        );
    }

    #[tokio::test]
    async fn a_grant_is_for_one_page() {
        let layer = UserAgentLayer::new(identity());
        let grant = Session::new().grant(&PAGE.parse().unwrap()).unwrap();
        let purpose = Purpose::UserFetch(grant);
        let site = Site::new(&[(429, ""), (301, "p2#top"), (200, "")]);
        let mut post = get(PAGE, purpose.clone());
        *post.method_mut() = http::Method::POST;
        assert_eq!(kind(site.ask(&layer, post).await), Err("method"));
        let other = get("https://site.example/p?x=1", purpose.clone());
        assert_eq!(
            kind(site.ask(&layer, other).await),
            Err("not_the_granted_url")
        );
        for expected in [429, 301] {
            assert_eq!(
                kind(site.ask(&layer, get(PAGE, purpose.clone())).await),
                Ok(expected)
            );
        }
        let hop = get("https://site.example/p2", purpose.clone());
        assert_eq!(kind(site.ask(&layer, hop).await), Ok(200));
        assert_eq!(
            kind(site.ask(&layer, get(PAGE, purpose)).await),
            Err("one_page_only")
        );
        assert_eq!(site.requests(), 3);
    }

    #[tokio::test]
    async fn nobody_asks_for_a_person_without_a_token_for_that() {
        let crawler = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html");
        let layer = UserAgentLayer::new(crawler.build().unwrap());
        let grant = Session::new().grant(&PAGE.parse().unwrap()).unwrap();
        let site = Site::new(&[]);
        let answer = site.ask(&layer, get(PAGE, Purpose::UserFetch(grant))).await;
        assert_eq!(kind(answer), Err("no_user_token"));
    }
}
