//! One preview: a visit for a person, and the title of what came.

use axum::extract::{Query, State};
use axum::http::{Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use serde_json::json;
use tower::ServiceExt;
use tower_etiquette::client::RequestBody;
use tower_etiquette::{BoxedService, Purpose, Refusal, Session};

use crate::cli::is_loopback;

/// The most bytes of a page that are looked at for its title.
const MOST: usize = 256 << 10;

/// The media type of a problem (RFC 9457).
const PROBLEM: &str = "application/problem+json";

/// The boxed client: `Clone`, `Send` and `Sync`, as axum's state has to be.
pub(super) type Fetch = BoxedService<RequestBody>;

/// What a person asks for.
#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    url: String,
}

/// An answer.
struct Preview {
    status: StatusCode,
    kind: &'static str,
    body: String,
}

/// What the handlers share.
#[derive(Clone)]
pub(super) struct App {
    pub(super) fetch: Fetch,
    /// The name is made up: no operator could find out who comes.
    pub(super) nameless: bool,
}

pub(super) async fn preview(State(app): State<App>, Query(wanted): Query<Wanted>) -> Response {
    // Each visit is a person's own. That many who ask for one page at the same time cost its site one request is the
    // doing of the cache, as long as nothing tells them apart.
    let preview = match wanted.url.parse::<Uri>() {
        Ok(url) if app.nameless && !is_loopback(&url) => Preview::problem(
            StatusCode::FORBIDDEN,
            "the site belongs to somebody, and this service has no name of its own: start it with --token, --user-token, \
             --bot-version and --info-url",
        ),
        Ok(url) => visit(app.fetch, url).await,
        Err(_) => Preview::problem(StatusCode::BAD_REQUEST, "the link is no URL"),
    };
    let kind = [("content-type", preview.kind)];
    (preview.status, kind, preview.body).into_response()
}

/// One visit to the page at `url`, which a person chose.
async fn visit(fetch: Fetch, url: Uri) -> Preview {
    // The session ends with this visit, and with it whatever was kept for it.
    let session = Session::new();
    let grant = match session.grant(&url) {
        Ok(grant) => grant,
        Err(error) => return Preview::problem(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let mut request = Request::new(RequestBody::default());
    *request.uri_mut() = url.clone();
    request.extensions_mut().insert(Purpose::UserFetch(grant));
    let response = match fetch.oneshot(request).await {
        Ok(response) => response,
        Err(_) => return Preview::problem(StatusCode::BAD_GATEWAY, "the site cannot be reached"),
    };
    let refused = response.extensions().get::<Refusal>().is_some();
    let status = response.status();
    let page = Limited::new(response.into_body(), MOST);
    let text = match page.collect().await {
        Ok(page) => String::from_utf8_lossy(&page.to_bytes()).into_owned(),
        Err(_) => {
            let detail = "the page broke off or is too large";
            return Preview::problem(StatusCode::BAD_GATEWAY, detail);
        }
    };
    if refused {
        return Preview {
            status,
            kind: PROBLEM,
            body: text,
        };
    }
    if !status.is_success() {
        let detail = format!("the site answered {status}");
        return Preview::problem(StatusCode::BAD_GATEWAY, &detail);
    }
    Preview {
        status: StatusCode::OK,
        kind: "application/json",
        body: json!({ "url": url.to_string(), "title": title(&text) }).to_string(),
    }
}

impl Preview {
    /// A problem of the service's own, in the form that refusals have.
    fn problem(status: StatusCode, detail: &str) -> Self {
        let title = status.canonical_reason();
        let body = json!({ "title": title, "status": status.as_u16(), "detail": detail });
        Self {
            status,
            kind: PROBLEM,
            body: body.to_string(),
        }
    }
}

/// The text of the first `<title>`, with blanks folded.
fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let text = page[start..end]
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles() {
        assert_eq!(
            title("<TITLE lang=en>A\n B</TITLE>").as_deref(),
            Some("A B")
        );
        assert_eq!(title("<title>A"), None);
        assert_eq!(title(""), None);
    }
}
