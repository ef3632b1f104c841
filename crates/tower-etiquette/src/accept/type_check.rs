//! Whether a response has a type that was asked for.

use etiquette_core::decide::accept::{self, Acceptability, TypeRefusal, TypeRefused};
use etiquette_core::{Identity, Origin, Refusal};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, response};

use crate::BoxError;

/// What is kept of a request until its response arrives.
#[derive(Clone, Debug)]
pub(super) struct TypeCheck {
    pub(super) accept: HeaderValue,
    pub(super) uri: Uri,
    pub(super) identity: Option<Identity>,
    /// Responses of other types are refused.
    pub(super) enabled: bool,
}

/// What is done with a response.
pub(super) enum TypeDecision {
    /// The response is passed on as it is.
    PassOn,
    /// Its type says nothing: the first bytes do.
    Sniff,
    /// The response is dropped unread.
    Refuse(TypeRefusal),
}

impl TypeCheck {
    pub(super) fn decide(&self, head: &response::Parts) -> TypeDecision {
        if head.status == StatusCode::NOT_ACCEPTABLE {
            return TypeDecision::Refuse(TypeRefusal::NotAcceptable);
        }
        let has_content = head.status.is_success() && head.status != StatusCode::NO_CONTENT;
        let content_type = content_type(&head.headers);
        if !self.enabled || !has_content || is_multipart(head.status, content_type) {
            return TypeDecision::PassOn;
        }
        match accept::judge(&self.accept, content_type) {
            Acceptability::Refuse => TypeDecision::Refuse(TypeRefusal::UnwantedType),
            // The middle of a file does not show what it is, nor do compressed bytes.
            Acceptability::Sniff
                if head.status != StatusCode::PARTIAL_CONTENT && !is_coded(&head.headers) =>
            {
                TypeDecision::Sniff
            }
            _ => TypeDecision::PassOn,
        }
    }

    pub(super) fn refuse(&self, head: &response::Parts, why: TypeRefusal) -> BoxError {
        Box::new(Refusal::Type(TypeRefused::new(
            Origin::of(&self.uri).ok(),
            why,
            self.accept.clone(),
            content_type(&head.headers).cloned(),
            self.identity.as_ref().map(Identity::help).cloned(),
        )))
    }
}

/// The Content-Type, unless there are several: then none of them can be believed.
fn content_type(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    lines.next().filter(|_| lines.next().is_none())
}

fn is_multipart(status: StatusCode, content_type: Option<&HeaderValue>) -> bool {
    status == StatusCode::PARTIAL_CONTENT
        && content_type.is_some_and(|value| {
            value
                .as_bytes()
                .to_ascii_lowercase()
                .starts_with(b"multipart/byteranges")
        })
}

fn is_coded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|coding| {
        !coding
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"identity")
    })
}
