//! The decision whether an answer is stored.

use http::header::{AUTHORIZATION, HeaderMap};
use http::{Method, StatusCode, Uri};

use super::directives::{RequestDirectives, ResponseDirectives, Scope};
use super::invalidates::names_itself;
use super::policy::{CachePolicy, may_guess};
use super::range::part;
use super::validators::has_validator;
use super::vary::Selecting;

/// Whether an answer is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storing {
    /// Yes, selected by these fields.
    Store(Selecting),
    /// No.
    Pass,
}

impl CachePolicy {
    /// Whether the answer to a request is stored (RFC 9111, 3).
    #[must_use]
    pub fn storing(
        &self,
        method: &Method,
        uri: &Uri,
        request: &HeaderMap,
        status: StatusCode,
        answer: &HeaderMap,
    ) -> Storing {
        let says = ResponseDirectives::of(answer);
        let explicit = says.max_age.is_some()
            || (self.shared && says.s_maxage.is_some())
            || answer.contains_key(http::header::EXPIRES);
        let fits = if *method == Method::GET {
            true
        } else {
            *method == Method::POST
                && status == StatusCode::OK
                && explicit
                && names_itself(uri, answer)
        };
        let final_status = !status.is_informational() && status != StatusCode::NOT_MODIFIED;
        if !fits || !final_status {
            return Storing::Pass;
        }
        if status == StatusCode::PARTIAL_CONTENT && part(answer, None).is_none() {
            return Storing::Pass;
        }
        let understood = status.canonical_reason().is_some();
        let forbidden = if says.must_understand {
            !understood
        } else {
            says.no_store
        };
        if forbidden || RequestDirectives::of(request).no_store {
            return Storing::Pass;
        }
        if self.shared {
            let for_one_user = says.private == Scope::All;
            let for_all = says.public || says.must_revalidate || says.s_maxage.is_some();
            if for_one_user || (request.contains_key(AUTHORIZATION) && !for_all) {
                return Storing::Pass;
            }
        }
        let granted =
            explicit || may_guess(status, &says) || (!self.shared && says.private != Scope::Absent);
        if !granted || !self.is_of_use(&says, explicit, answer) {
            return Storing::Pass;
        }
        match self.selecting(request, answer) {
            Some(selecting) => Storing::Store(selecting),
            None => Storing::Pass,
        }
    }

    /// Whether a stored copy could ever spare the origin anything.
    fn is_of_use(&self, says: &ResponseDirectives, explicit: bool, answer: &HeaderMap) -> bool {
        let lives = match (self.shared, says.s_maxage, says.max_age) {
            (true, Some(life), _) | (_, _, Some(life)) => !life.is_zero(),
            _ => explicit || self.default_ttl.is_some(),
        };
        lives
            || has_validator(answer)
            || says.stale_while_revalidate.is_some()
            || says.stale_if_error.is_some()
            || self.floor.is_some()
    }
}
