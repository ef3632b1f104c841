use std::error::Error;
use std::fmt;
use std::pin::pin;

use bytes::Buf;
use http::{Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::BodyExt;
use tower_service::Service;

use crate::ready::ready;
use crate::{BoxError, Identity};

/// How many bytes of a page are searched for the token.
const MOST: usize = 256 << 10;

/// The link answers and its page names the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Whether the page names the token for user fetches too, where the identity has one.
    pub names_user_token: bool,
}

/// Why the link helps nobody.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unpublished {
    /// No answer came.
    NoAnswer(BoxError),
    /// The answer is no page.
    Status(StatusCode),
    /// The page does not name the token, so that whoever looks it up cannot tell that it is about this client.
    NotNamed,
}

impl fmt::Display for Unpublished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(_) => f.write_str("the identity's link does not answer"),
            Self::Status(status) => write!(f, "the identity's link answers {status}"),
            Self::NotNamed => f.write_str("the page behind the identity's link does not name it"),
        }
    }
}

impl Error for Unpublished {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoAnswer(error) => Some(&**error),
            _ => None,
        }
    }
}

/// Asks for the identity's link through `client` and tells whether it leads to a page that names its token.
///
/// # Errors
/// [`Unpublished`] when it does not.
///
/// # Cancel safety
/// Dropping it drops the request.
pub async fn check_published<S, ReqBody, ResBody>(
    identity: &Identity,
    mut client: S,
) -> Result<Published, Unpublished>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    ReqBody: Default,
    ResBody: Body,
    ResBody::Error: Into<BoxError>,
{
    let failed = |error: BoxError| Unpublished::NoAnswer(error);
    let mut request = Request::new(ReqBody::default());
    // The identity was made with a valid link; a fragment is not sent.
    *request.uri_mut() = identity
        .url()
        .parse::<Uri>()
        .map_err(|error| failed(error.into()))?;
    ready(&mut client)
        .await
        .map_err(|error| failed(error.into()))?;
    let response = client
        .call(request)
        .await
        .map_err(|error| failed(error.into()))?;
    if !response.status().is_success() {
        return Err(Unpublished::Status(response.status()));
    }
    let mut body = pin!(response.into_body());
    let mut page = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| failed(error.into()))?;
        if let Ok(mut data) = frame.into_data() {
            let take = data.remaining().min(MOST - page.len());
            page.extend_from_slice(&data.copy_to_bytes(take));
        }
        if page.len() == MOST {
            break;
        }
    }
    let page = String::from_utf8_lossy(&page);
    if !identity.token().appears_in(&page) {
        return Err(Unpublished::NotNamed);
    }
    let names = |token: &etiquette_robots::ProductToken| token.appears_in(&page);
    Ok(Published {
        names_user_token: identity.user_token().is_none_or(names),
    })
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use tower::service_fn;

    use super::super::DescriptionPage;
    use super::*;

    fn identity() -> Identity {
        Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
            .user_token("Example-User")
            .build()
            .unwrap()
    }

    #[tokio::test]
    async fn the_page_passes_its_own_check() {
        let page = DescriptionPage::new(&identity());
        let published = check_published::<_, (), _>(&identity(), page)
            .await
            .unwrap();
        assert!(published.names_user_token);
    }

    #[tokio::test]
    async fn what_helps_nobody() {
        let site = |status: u16, body: &'static str| {
            service_fn(move |_: Request<()>| async move {
                let answer = Response::builder().status(status);
                answer.body(Full::<bytes::Bytes>::from(body))
            })
        };
        let gone = check_published(&identity(), site(404, "")).await;
        assert!(matches!(
            gone,
            Err(Unpublished::Status(StatusCode::NOT_FOUND))
        ));
        let other = check_published(&identity(), site(200, "Welcome")).await;
        assert!(matches!(other, Err(Unpublished::NotNamed)));
    }
}
