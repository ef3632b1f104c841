//! What `AcceptLayer` does to bodies: nothing is lost of one that was looked at, nothing more is taken of one that is
//! refused.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tower::{ServiceExt, service_fn};
use tower_etiquette::accept::{Accept, AcceptLayer, Preset};
use tower_etiquette::{BoxError, Refusal};
use tower_layer::Layer;

/// Ten pieces of 100 bytes and a trailer; it counts what is taken.
#[derive(Clone)]
struct Pieces {
    first: &'static [u8],
    given: usize,
    taken: Arc<AtomicUsize>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Every other poll has nothing yet.
        self.given += 1;
        if self.given % 2 == 1 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let frame = match self.given / 2 {
            1 => {
                let mut piece = self.first.to_vec();
                piece.resize(100, b' ');
                Frame::data(piece.into())
            }
            2..=10 => Frame::data(Bytes::from_static(&[b'x'; 100])),
            11 => {
                let trailers = HeaderMap::from_iter([(CONTENT_TYPE, "x/y".parse().unwrap())]);
                Frame::trailers(trailers)
            }
            _ => return Poll::Ready(None),
        };
        self.taken.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Ok(frame)))
    }

    fn size_hint(&self) -> SizeHint {
        let left = 10_u64.saturating_sub(self.given as u64 / 2);
        SizeHint::with_exact(left * 100)
    }
}

type Fields = &'static [(http::HeaderName, &'static str)];

/// What comes of an answer with these fields, and how many frames were taken by then.
async fn ask(
    method: Method,
    status: u16,
    fields: Fields,
    first: &'static [u8],
) -> (Result<Response<Vec<u8>>, &'static str>, usize) {
    let taken = Arc::new(AtomicUsize::new(0));
    let site = service_fn(|_: Request<()>| {
        let mut response = Response::new(Pieces {
            first,
            given: 0,
            taken: Arc::clone(&taken),
        });
        *response.status_mut() = status.try_into().unwrap();
        for (name, value) in fields {
            response.headers_mut().append(name, value.parse().unwrap());
        }
        async move { Ok::<_, Infallible>(response) }
    });
    let layer = AcceptLayer::new(Accept::preset(Preset::Feed)).refuse_others(true);
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = "http://site.example/feed".parse().unwrap();
    let answer: Result<_, BoxError> = layer.layer(site).oneshot(request).await;
    let taken_at_head = taken.load(Ordering::Relaxed);
    let answer = match answer {
        Ok(response) => {
            let (head, body) = response.into_parts();
            assert_eq!(body.size_hint().exact(), Some(1_000));
            assert!(!body.is_end_stream());
            let all = body.collect().await.unwrap();
            assert!(all.trailers().is_some(), "the trailers are lost");
            Ok(Response::from_parts(head, all.to_bytes().to_vec()))
        }
        Err(error) => Err(Refusal::find(&*error).unwrap().kind()),
    };
    (answer, taken_at_head)
}

#[tokio::test]
async fn a_body_that_was_looked_at_is_whole() {
    for fields in [
        &[][..],
        &[(CONTENT_TYPE, "text/plain")],
        &[(CONTENT_TYPE, "application/octet-stream")],
        &[(CONTENT_TYPE, "text/xml"), (CONTENT_TYPE, "text/html")],
    ] {
        let (answer, taken) = ask(Method::GET, 200, fields, b"<rss>").await;
        let body = answer.unwrap().into_body();
        assert!(body.starts_with(b"<rss>"), "{fields:?}");
        assert_eq!(body.len(), 1_000, "{fields:?}");
        assert_eq!(taken, 6, "{fields:?}: 512 bytes are in six pieces");
    }
}

#[tokio::test]
async fn what_was_not_asked_for_is_not_read() {
    let html: Fields = &[(CONTENT_TYPE, "text/html")];
    let (answer, taken) = ask(Method::GET, 200, html, b"<rss>").await;
    assert_eq!((answer.err(), taken), (Some("unwanted_type"), 0));
    let (answer, taken) = ask(Method::GET, 200, &[], b"<!doctype html>").await;
    assert_eq!((answer.err(), taken), (Some("unwanted_type"), 6));
    let (answer, taken) = ask(Method::GET, 406, html, b"").await;
    assert_eq!((answer.err(), taken), (Some("not_acceptable"), 0));
}

#[tokio::test]
async fn what_cannot_be_told_is_handed_on_untouched() {
    let html: Fields = &[(CONTENT_TYPE, "text/html")];
    let coded: Fields = &[(CONTENT_ENCODING, "gzip")];
    for (method, status, fields) in [
        (Method::HEAD, 200, html),
        (Method::GET, 404, html),
        (Method::GET, 304, html),
        (Method::GET, 200, coded),
        (Method::GET, 206, &[][..]),
    ] {
        let (answer, taken) = ask(method, status, fields, b"%PDF-").await;
        assert!(answer.is_ok(), "{status} {fields:?}");
        assert_eq!(taken, 0, "{status} {fields:?}");
    }
}
