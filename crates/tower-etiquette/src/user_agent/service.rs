use std::sync::Arc;

use etiquette_core::vocabulary::identity::{NameRefusal, NameRefused, Verdict, is_library_default};
use etiquette_core::vocabulary::purpose::{ApiKey, GrantRefused};
use etiquette_core::{Origin, Purpose, PurposeKind, Refusal};
use http::header::{FROM, USER_AGENT};
use http::{HeaderMap, request, response};
use tower_layer::Layer;

use super::granted::GrantedRequest;
use super::{UserAgentConfig, UserAgentLayer};
use crate::Identity;
use crate::context::Context;
use crate::head::{HeadService, OnHead};
use crate::macros::service_constructors;

/// The service of [`UserAgentLayer`].
pub type UserAgent<S> = HeadService<S, UserAgentConfig>;

impl<S> Layer<S> for UserAgentLayer {
    type Service = UserAgent<S>;

    fn layer(&self, inner: S) -> UserAgent<S> {
        UserAgent::with_config(inner, self.config.clone())
    }
}

service_constructors!(UserAgent, UserAgentLayer, identity: Identity);

impl OnHead for UserAgentConfig {
    type Pending = Option<Box<GrantedRequest>>;

    fn on_request(&self, request: &mut request::Parts) -> Result<Self::Pending, Refusal> {
        remove_key_of_another_origin(request);
        let purpose = Purpose::kind_of(&request.extensions, &request.uri, &request.headers);
        if let Err(why) = self.set_name(&mut request.headers, purpose) {
            let origin = Origin::of(&request.uri).ok();
            return Err(NameRefused::new(origin, why, self.contact()).into());
        }
        let granted = GrantedRequest::begin(request).map_err(|why| {
            let origin = Origin::of(&request.uri).ok();
            Refusal::from(GrantRefused::new(origin, why, self.contact()))
        })?;
        Context::of(&mut request.extensions).identity = Some(self.identity.clone());
        Ok(granted)
    }

    fn on_response(granted: Self::Pending, response: &mut response::Parts) -> Result<(), Refusal> {
        if let Some(granted) = granted {
            granted.answered(response);
        }
        Ok(())
    }
}

/// A redirect may have led an API request to another site, where its key is nobody's business.
fn remove_key_of_another_origin(request: &mut request::Parts) {
    let Some(Purpose::Api(api)) = request.extensions.get() else {
        return;
    };
    let ApiKey::Header(name) = api.key() else {
        return;
    };
    if Origin::of(&request.uri).is_ok_and(|origin| origin != *api.origin()) {
        request.headers.remove(name);
    }
}

impl UserAgentConfig {
    fn contact(&self) -> Option<Arc<str>> {
        Some(Arc::clone(self.identity.help()))
    }

    /// Sets User-Agent and From for `purpose`, or says why the request must not be sent.
    fn set_name(&self, headers: &mut HeaderMap, purpose: PurposeKind) -> Result<(), NameRefusal> {
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
    use http::header::LOCATION;
    use http::{Request, Response, StatusCode};
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::Facts;

    const PAGE: &str = "https://site.example/p";

    fn identity() -> Identity {
        Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
            .user_token("Example-User")
            .contact("bot@example.com")
            .build()
            .unwrap()
    }

    /// A site that gives the responses in order and notes what it saw.
    #[derive(Clone, Default)]
    struct Site {
        responses: Arc<Mutex<Vec<(u16, &'static str)>>>,
        seen: Arc<Mutex<Vec<HeaderMap>>>,
    }

    impl Site {
        fn new(responses: &[(u16, &'static str)]) -> Self {
            let responses = responses.iter().rev().copied().collect();
            Self {
                responses: Arc::new(Mutex::new(responses)),
                seen: Arc::default(),
            }
        }

        async fn send(
            &self,
            layer: &UserAgentLayer,
            request: Request<()>,
        ) -> Result<Response<()>, Refusal> {
            let site = service_fn(|request: Request<()>| {
                self.seen.lock().unwrap().push(request.headers().clone());
                let (status, target) = self.responses.lock().unwrap().pop().unwrap();
                let mut response = Response::new(());
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response
                    .headers_mut()
                    .insert(LOCATION, target.parse().unwrap());
                async move { Ok::<_, Infallible>(response) }
            });
            let response = layer.layer(site).oneshot(request).await;
            response.map_err(|error| Refusal::find(&*error).unwrap().clone())
        }

        fn requests(&self) -> usize {
            self.seen.lock().unwrap().len()
        }
    }

    fn get(url: &str, purpose: Purpose) -> Request<()> {
        Request::get(url).extension(purpose).body(()).unwrap()
    }

    fn kind(response: Result<Response<()>, Refusal>) -> Result<u16, &'static str> {
        response
            .map(|response| response.status().as_u16())
            .map_err(|refusal| refusal.kind())
    }

    #[tokio::test]
    async fn each_purpose_has_its_name() {
        let layer = UserAgentLayer::new(identity());
        let site = Site::new(&[(200, ""); 2]);
        site.send(&layer, get(PAGE, Purpose::Crawl)).await.unwrap();
        let grant = Session::new().grant(&PAGE.parse().unwrap()).unwrap();
        let mut request = get(PAGE, Purpose::UserFetch(grant));
        let address = "person@example.com".parse().unwrap();
        request.headers_mut().insert(FROM, address);
        let page = site.send(&layer, request).await.unwrap();
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
            let response = site.send(&layer, request).await;
            match expected {
                Ok(sent) => assert_eq!(site.seen.lock().unwrap()[0][USER_AGENT], sent),
                Err(why) => assert_eq!((kind(response), site.requests()), (Err(why), 0), "{name}"),
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
        assert_eq!(kind(site.send(&layer, request).await), Err("several_names"));
        let gateway = layer.replace_callers_name(true);
        let mut request = get(PAGE, Purpose::Crawl);
        request
            .headers_mut()
            .append(USER_AGENT, "Firefox".parse().unwrap());
        request
            .headers_mut()
            .append(USER_AGENT, own.parse().unwrap());
        assert_eq!(kind(site.send(&gateway, request).await), Ok(200));
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
        assert_eq!(kind(site.send(&layer, post).await), Err("method"));
        let other = get("https://site.example/p?x=1", purpose.clone());
        assert_eq!(
            kind(site.send(&layer, other).await),
            Err("not_the_granted_url")
        );
        for expected in [429, 301] {
            assert_eq!(
                kind(site.send(&layer, get(PAGE, purpose.clone())).await),
                Ok(expected)
            );
        }
        let hop = get("https://site.example/p2", purpose.clone());
        assert_eq!(kind(site.send(&layer, hop).await), Ok(200));
        assert_eq!(
            kind(site.send(&layer, get(PAGE, purpose)).await),
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
        let response = site
            .send(&layer, get(PAGE, Purpose::UserFetch(grant)))
            .await;
        assert_eq!(kind(response), Err("no_user_token"));
    }
}
