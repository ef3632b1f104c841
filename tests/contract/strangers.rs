//! People who ask for one page at the same time, as strangers to the site, cost it one request; whoever tells who he is
//! asks for himself, and nobody is shown what is for somebody else.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use tokio::task::JoinSet;
use tower::ServiceExt;
use tower_etiquette::conditional_cache::CacheStatus;
use tower_etiquette::{Facts, Purpose, Refusal, Session};

use crate::retention::{Fixture, PAGE};

type Fields = &'static [(&'static str, &'static str)];

/// A request for a person.
fn asked(session: &Session, fields: Fields) -> Request<Empty<Bytes>> {
    let grant = session.grant(&PAGE.parse().unwrap()).unwrap();
    let mut request = Request::get(PAGE);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let purpose = Purpose::UserFetch(grant);
    request.extension(purpose).body(Empty::new()).unwrap()
}

/// So many people ask at once, each with a session of his own; how many requests for the page the site has seen since.
async fn requests(fixture: &Fixture, people: usize, fields: Fields) -> usize {
    let mut visits = JoinSet::new();
    for _ in 0..people {
        let client = fixture.client.clone();
        visits.spawn(async move {
            let session = Session::new();
            let answer = client.oneshot(asked(&session, fields)).await.unwrap();
            assert!(!Facts::of(&answer).unwrap().may_retain());
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, "a secret body");
        });
    }
    visits.join_all().await;
    fixture.pages().len()
}

#[tokio::test(start_paused = true)]
async fn strangers_share_what_is_for_anybody() {
    for (what, fields) in [
        ("nothing said", &[][..]),
        ("fresh", &[("cache-control", "max-age=600")]),
        ("with a validator", &[("etag", "\"secret\"")]),
        (
            "varied alike",
            &[("vary", "user-agent"), ("etag", "\"secret\"")],
        ),
    ] {
        let fixture = Fixture::new();
        fixture.serve(200, fields);
        let asked = requests(&fixture, 50, &[("accept", "text/html")]).await;
        assert_eq!(asked, 1, "{what}");
        fixture.nothing_was_kept(what);
        // It is kept for nobody: whoever comes later asks anew, and without a validator.
        assert_eq!(requests(&fixture, 1, &[]).await, 2, "{what}");
        assert!(!fixture.pages()[1].is_conditional(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_for_one_is_shown_to_one() {
    for fields in [
        &[("cache-control", "private, max-age=600")][..],
        &[("cache-control", "private=\"x-name\", max-age=600")],
        &[("cache-control", "no-store")],
        &[("set-cookie", "secret=1"), ("cache-control", "max-age=600")],
        &[("vary", "*")],
        // It demands to be asked about each time.
        &[("cache-control", "no-cache"), ("etag", "\"secret\"")],
    ] {
        let fixture = Fixture::new();
        fixture.serve(200, fields);
        assert_eq!(requests(&fixture, 5, &[]).await, 5, "{fields:?}");
        fixture.nothing_was_kept(&format!("{fields:?}"));
    }
    for fields in [
        &[("cookie", "secret=1")][..],
        &[("authorization", "Basic secret")],
        &[("cache-control", "no-store")],
        &[("cache-control", "no-cache")],
        &[("range", "bytes=0-")],
    ] {
        let fixture = Fixture::new();
        fixture.serve(200, &[("cache-control", "max-age=600")]);
        assert_eq!(requests(&fixture, 5, fields).await, 5, "{fields:?}");
        fixture.nothing_was_kept(&format!("{fields:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_and_a_person_do_not_share() {
    let fixture = Fixture::new();
    fixture.serve(200, &[("etag", "\"secret\"")]);
    tokio::join!(fixture.crawl(), requests(&fixture, 5, &[]));
    let pages = fixture.pages();
    assert_eq!(pages.len(), 2);
    assert_ne!(pages[0].user_agent(), pages[1].user_agent());
}

/// A site that wants a pause is asked by nobody else, and each of them hears when to come back.
#[tokio::test(start_paused = true)]
async fn all_are_told_when_to_come_back() {
    let fixture = Fixture::new();
    fixture.serve(429, &[("retry-after", "86400")]);
    let mut visits = JoinSet::new();
    for _ in 0..5 {
        let client = fixture.client.clone();
        visits.spawn(async move {
            match client.oneshot(asked(&Session::new(), &[])).await {
                Ok(answer) => Facts::of(&answer).unwrap().retry_at(),
                Err(error) => Refusal::find(&*error).unwrap().retry_at(),
            }
        });
    }
    for retry_at in visits.join_all().await {
        assert!(retry_at.is_some());
    }
    assert_eq!(fixture.pages().len(), 1);
    fixture.nothing_was_kept("a pause");
}

/// Whether `future` waits for something.
async fn waits<F: Future + Unpin>(future: &mut F) -> bool {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx).is_pending())).await
}

/// The one who asked first may go away: the others are served all the same, by the same request.
#[tokio::test(start_paused = true)]
async fn whoever_gives_up_takes_nothing_from_the_others() {
    let fixture = Fixture::new();
    fixture.serve(200, &[]);
    let first = Session::new();
    let mut leaving = Box::pin(fixture.client.clone().oneshot(asked(&first, &[])));
    // Until its request is under way: robots.txt takes a step before it.
    let step = Duration::from_millis(35);
    assert!(tokio::time::timeout(step, &mut leaving).await.is_err());
    assert_eq!(fixture.pages().len(), 1);
    let second = Session::new();
    let mut staying = Box::pin(fixture.client.clone().oneshot(asked(&second, &[])));
    assert!(waits(&mut staying).await);
    drop(leaving);
    drop(first);
    let answer = staying.await.unwrap();
    let status = Facts::of(&answer).unwrap().cache_status();
    let Some(CacheStatus::Forwarded {
        collapsed, stored, ..
    }) = status
    else {
        panic!("{status:?}")
    };
    assert_eq!((collapsed, stored), (true, false));
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "a secret body");
    assert_eq!(fixture.pages().len(), 1);
    fixture.nothing_was_kept("after one gave up");
}
