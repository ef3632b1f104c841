//! Redirects outside the stack: each hop is a request of its own to the layers below.

use http::Request;
use tower_http::follow_redirect::policy::{Action, Attempt, FilterCredentials, Policy};

use super::body::RequestBody;
use super::error::TooManyRedirects;
use crate::context::Context;
use crate::redirect::is_http;
use crate::{BoxError, Purpose, Visit};

/// Follows a bounded number of redirects, drops credentials on the way to another origin, and lets all hops share one
/// visit.
#[derive(Clone, Debug)]
pub(super) struct Redirects {
    max: usize,
    left: usize,
    credentials: FilterCredentials,
}

impl Redirects {
    pub(super) fn new(max: usize) -> Self {
        let credentials = FilterCredentials::new()
            .allow_extension::<Purpose>()
            .allow_extension::<Context>();
        Self {
            max,
            left: max,
            credentials,
        }
    }
}

impl Policy<RequestBody, BoxError> for Redirects {
    fn redirect(&mut self, attempt: &Attempt<'_>) -> Result<Action, BoxError> {
        // A target that is no http or https URL is handed on with the redirect that named it.
        if !is_http(attempt.location()) {
            return Ok(Action::Stop);
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Err(TooManyRedirects { max: self.max }.into());
        };
        self.left = left;
        Policy::<RequestBody, BoxError>::redirect(&mut self.credentials, attempt)
    }

    fn on_request(&mut self, request: &mut Request<RequestBody>) {
        Policy::<RequestBody, BoxError>::on_request(&mut self.credentials, request);
        let context = Context::of(request.extensions_mut());
        if context.visit.is_none() {
            context.visit = Some(Visit::default());
        }
    }

    fn clone_body(&self, body: &RequestBody) -> Option<RequestBody> {
        Some(body.clone())
    }
}
