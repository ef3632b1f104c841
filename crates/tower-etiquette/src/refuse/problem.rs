//! The problem response of a refusal (RFC 9457).

use std::time::SystemTime;

use etiquette_core::Refusal;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use super::ProblemBody;
use crate::json::Object;

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The problem response of a refusal at `now`.
pub(super) fn problem_response<B>(refusal: &Refusal, now: SystemTime) -> Response<ProblemBody<B>> {
    let mut response = Response::new(ProblemBody::problem(description(refusal)));
    *response.status_mut() = status(refusal);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    let proxy_status = format!(
        "tower-etiquette; error=http_request_denied; details=\"{}\"",
        refusal.kind()
    );
    if let Ok(proxy_status) = HeaderValue::from_str(&proxy_status) {
        headers.insert(PROXY_STATUS, proxy_status);
    }
    if let Some(at) = refusal.retry_at() {
        // Rounded up: who comes back at that second is not sent away again.
        let left = at.duration_since(now).unwrap_or_default();
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response.extensions_mut().insert(refusal.clone());
    response
}

fn description(refusal: &Refusal) -> String {
    let mut object = Object::default();
    object.text("title", "this client does not send the request");
    object.raw("status", status(refusal).as_u16());
    object.text("detail", &refusal.explain().to_string());
    object.text("kind", refusal.kind());
    if let Some(origin) = refusal.origin() {
        object.text("origin", &origin.to_string());
    }
    if let Some(contact) = refusal.contact() {
        object.text("contact", contact);
    }
    object.finish()
}

fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::NoOrigin(_) => StatusCode::BAD_REQUEST,
        Refusal::Host(_) => StatusCode::TOO_MANY_REQUESTS,
        Refusal::RobotsUnreachable(_) => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Type(_) => StatusCode::NOT_ACCEPTABLE,
        Refusal::NotStored(_) => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::FORBIDDEN,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use etiquette_core::Origin;
    use etiquette_core::vocabulary::refusal::{HostRefusal, HostRefused};
    use http_body_util::{BodyExt, Empty};

    use super::*;

    #[tokio::test]
    async fn a_refusal_tells_when_to_come_back() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let origin = Origin::of(&"http://site.example".parse().unwrap()).unwrap();
        let at = now + Duration::from_millis(1_500);
        let contact = Some("\"who\"\n@example.com".into());
        let refused = HostRefused::new(origin, HostRefusal::Paused, Some(at), contact);
        let response = problem_response::<Empty<Bytes>>(&refused.into(), now);
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "2");
        assert!(response.extensions().get::<Refusal>().is_some());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&body).unwrap();
        assert!(
            text.ends_with(",\"contact\":\"\\\"who\\\"\\n@example.com\"}"),
            "{text}"
        );
        assert!(
            text.contains("\"kind\":\"paused\",\"origin\":\"http://site.example\""),
            "{text}"
        );
    }
}
