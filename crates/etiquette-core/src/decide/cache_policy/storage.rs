//! Storing responses (RFC 9111, 3).

use http::header::{AUTHORIZATION, HeaderMap};
use http::{Method, StatusCode, Uri};

use super::directives::{Qualifiable, RequestDirectives, ResponseDirectives};
use super::freshness::is_heuristically_cacheable;
use super::invalidation::names_itself;
use super::policy::CachePolicy;
use super::range::ContentRange;
use super::validators::has_validator;
use super::vary::Selecting;

impl CachePolicy {
    /// Whether the response to a request may be stored and is worth it (RFC 9111, 3): the request fields that select it, or
    /// `None`.
    #[must_use]
    pub fn may_store(
        &self,
        method: &Method,
        uri: &Uri,
        request: &HeaderMap,
        status: StatusCode,
        response: &HeaderMap,
    ) -> Option<Selecting> {
        let says = ResponseDirectives::of(response);
        let explicit = says.max_age.is_some()
            || (self.shared && says.s_maxage.is_some())
            || response.contains_key(http::header::EXPIRES);
        let fits = if *method == Method::GET {
            true
        } else {
            *method == Method::POST
                && status == StatusCode::OK
                && explicit
                && names_itself(uri, response)
        };
        let final_status = !status.is_informational() && status != StatusCode::NOT_MODIFIED;
        if !fits || !final_status {
            return None;
        }
        if status == StatusCode::PARTIAL_CONTENT && ContentRange::of(response).is_none() {
            return None;
        }
        let understood = status.canonical_reason().is_some();
        let forbidden = if says.must_understand {
            !understood
        } else {
            says.no_store
        };
        if forbidden || RequestDirectives::of(request).no_store {
            return None;
        }
        if self.shared {
            let for_one_user = says.private == Qualifiable::Unqualified;
            let for_all = says.public || says.must_revalidate || says.s_maxage.is_some();
            if for_one_user || (request.contains_key(AUTHORIZATION) && !for_all) {
                return None;
            }
        }
        let granted = explicit
            || is_heuristically_cacheable(status, &says)
            || (!self.shared && says.private != Qualifiable::Absent);
        if !granted || !self.is_of_use(&says, explicit, response) {
            return None;
        }
        self.selecting(request, response)
    }

    /// Whether the stored response could ever spare the origin anything.
    fn is_of_use(&self, says: &ResponseDirectives, explicit: bool, response: &HeaderMap) -> bool {
        let lives = match (self.shared, says.s_maxage, says.max_age) {
            (true, Some(life), _) | (_, _, Some(life)) => !life.is_zero(),
            _ => explicit || self.default_ttl.is_some(),
        };
        lives
            || has_validator(response)
            || says.stale_while_revalidate.is_some()
            || says.stale_if_error.is_some()
            || self.floor.is_some()
    }
}
