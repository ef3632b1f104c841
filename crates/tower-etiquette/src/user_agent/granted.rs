use etiquette_core::Purpose;
use etiquette_core::vocabulary::purpose::{Attempt, GrantRefusal};
use http::header::LOCATION;
use http::{Uri, request, response};

use crate::context::Context;
use crate::facts::Facts;
use crate::redirect::redirect_target;
use crate::visit::Visit;

/// A request under a [`UserGrant`](crate::UserGrant), until its response arrives.
#[derive(Debug)]
pub struct GrantedRequest {
    attempt: Attempt,
    url: Uri,
}

impl GrantedRequest {
    /// Begins an attempt under the request's grant, if it has one.
    pub(super) fn begin(request: &mut request::Parts) -> Result<Option<Box<Self>>, GrantRefusal> {
        let Some(Purpose::UserFetch(grant)) = request.extensions.get() else {
            return Ok(None);
        };
        let attempt = grant.begin(&request.method, &request.uri)?;
        // robots.txt, hops, retries and the page are one visit and take one delay of each host.
        let visit = grant.keep(Visit::default);
        visit.with(|state| state.one_delay = true);
        Context::of(&mut request.extensions).visit = Some(visit);
        let url = request.uri.clone();
        Ok(Some(Box::new(Self { attempt, url })))
    }

    /// Moves the grant on by the response, and says on it what a page is for that a person asked for.
    pub(super) fn answered(self, response: &mut response::Parts) {
        let location = response.headers.get(LOCATION);
        let next = location
            .and_then(|location| location.to_str().ok())
            .and_then(|location| redirect_target(&self.url, location));
        self.attempt.answered(response.status, next.as_ref());
        Facts::edit(&mut response.extensions, |facts| facts.user_fetch = true);
    }
}
