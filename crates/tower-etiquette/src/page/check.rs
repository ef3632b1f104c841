use std::error::Error;
use std::fmt;

use http::{Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use crate::ready::{read_up_to, send};
use crate::{BoxError, Identity};

/// How many bytes of a page are searched for the token.
const MAX_BYTES: usize = 256 << 10;

/// There is a page behind the link, and it names the token.
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
    /// There was no response, or its body ended early.
    NoResponse(BoxError),
    /// The response is no page.
    Status(StatusCode),
    /// The page does not name the token, so that whoever looks it up cannot tell that it is about this client.
    NotNamed,
}

impl fmt::Display for Unpublished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResponse(_) => f.write_str("no response from the identity's link"),
            Self::Status(status) => write!(f, "status {status} from the identity's link"),
            Self::NotNamed => {
                f.write_str("the page behind the identity's link does not name its token")
            }
        }
    }
}

impl Error for Unpublished {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoResponse(error) => Some(&**error),
            _ => None,
        }
    }
}

/// Fetches the identity's link through `client` and checks that it leads to a page that names its token.
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
    let mut request = Request::new(ReqBody::default());
    // The identity was made with a valid link; a fragment is not sent.
    *request.uri_mut() = identity.url().parse().map_err(no_response)?;
    let response = send(&mut client, request).await.map_err(no_response)?;
    if !response.status().is_success() {
        return Err(Unpublished::Status(response.status()));
    }
    let page = read_up_to(response.into_body(), MAX_BYTES).await;
    let page = page.map_err(no_response)?;
    let page = String::from_utf8_lossy(&page);
    if !identity.token().appears_in(&page) {
        return Err(Unpublished::NotNamed);
    }
    let names = |token: &etiquette_robots::ProductToken| token.appears_in(&page);
    Ok(Published {
        names_user_token: identity.user_token().is_none_or(names),
    })
}

fn no_response(cause: impl Into<BoxError>) -> Unpublished {
    Unpublished::NoResponse(cause.into())
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
                let response = Response::builder().status(status);
                response.body(Full::<bytes::Bytes>::from(body))
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
