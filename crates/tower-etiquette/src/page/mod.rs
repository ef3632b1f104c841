//! The page behind the link: what a site operator reads who found the name in a log.
//!
//! **What a site operator gains**: who this is, what for, how to slow it down, stop one path, stop it altogether and
//! stop page fetches for people, with lines to paste; within how many minutes each acts; how to tell this client from
//! somebody who uses its name; whom to write to.
//!
//! **Defaults**: HTML that works without scripts, or the same facts and sentences as JSON by Accept; in English, French
//! or German by Accept-Language. GET and HEAD at any path: nest it where the identity's link leads. In axum:
//!
//! ```ignore
//! let page = DescriptionPage::new(&identity);
//! let app = Router::new().route_service("/bot.html", page);
//! ```
//!
//! ```
//! use http::Request;
//! use http_body_util::BodyExt;
//! use tower::ServiceExt;
//! use tower_etiquette::{Identity, page::DescriptionPage};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tower_etiquette::BoxError> {
//! let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
//!     .contact("bot@example.com")
//!     .build()?;
//! let page = DescriptionPage::new(&identity);
//! let request = Request::get("/bot.html").header("accept-language", "de").body(())?;
//! let response = page.oneshot(request).await?;
//! let html = response.into_body().collect().await?.to_bytes();
//! let html = std::str::from_utf8(&html)?;
//! assert!(html.contains("User-agent: ExampleBot\nDisallow: /"));
//! assert!(html.contains("lang=\"de\""));
//! # Ok(())
//! # }
//! ```
//!
//! **The check**: [`check_published`] asks for the link and checks that it leads to a page that names the token. An identity
//! whose link leads nowhere helps nobody.

mod check;
mod description;
mod html;
mod json;
mod negotiate;
mod service;
mod text;

pub use check::{Published, Unpublished, check_published};
pub use service::{DescriptionPage, PageFuture};
