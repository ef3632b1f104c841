//! What was not asked for is not downloaded, and Accept, Vary and the cache agree.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use etiquette_tests::site::{Answer, Script, Site};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tower_etiquette::Refusal;
use tower_etiquette::accept::{Accept, AcceptLayer, Preset};
use tower_etiquette::conditional_cache::MemoryStore;

use crate::client::{HttpClient, etiquette, eventually, millis, refusal};
use crate::with_both_clients;

with_both_clients!(
    refused_bodies_stay_on_the_site,
    a_406_is_an_error_and_no_second_try,
    vary_on_accept_keeps_the_forms_apart,
);

/// The length of each body.
const BODY: usize = 32 << 20;
/// What may be on its way in the buffers of both ends when nobody reads: far less than a body.
const BUFFERS: usize = 4 << 20;

/// A site that counts what it can hand to the wire. It writes as fast as the other side takes it, so that only what
/// lies in the buffers of the two ends is more than what was read.
struct Counting {
    address: SocketAddr,
    /// For each path the bytes of its body that were handed over, once its connection is over.
    sent: Arc<Mutex<HashMap<String, usize>>>,
}

impl Counting {
    fn start() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(64 << 10).unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(16).unwrap();
        let address = listener.local_addr().unwrap();
        let sent = Arc::new(Mutex::new(HashMap::new()));
        let counts = Arc::clone(&sent);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let counts = Arc::clone(&counts);
                tokio::spawn(async move {
                    if let Some((path, bytes)) = converse(stream).await {
                        counts.lock().unwrap().insert(path, bytes);
                    }
                });
            }
        });
        Self { address, sent }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The bytes of the body of `path`, once its connection is over.
    async fn bytes_of(&self, path: &str) -> usize {
        let over = || self.sent.lock().unwrap().get(path).copied();
        eventually(path, || over().is_some()).await;
        over().unwrap()
    }
}

/// One request and as much of its answer as the other side takes.
async fn converse(mut stream: TcpStream) -> Option<(String, usize)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    let (status, kind, first) = match path.as_str() {
        "/feed" => ("200 OK", "content-type: application/rss+xml\r\n", "<rss>"),
        "/film" => ("200 OK", "content-type: video/mp4\r\n", ""),
        "/nameless-page" => ("200 OK", "", "<!doctype html>"),
        "/406" => ("406 Not Acceptable", "content-type: text/html\r\n", ""),
        _ => {
            let none = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(none).await.ok()?;
            return None;
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{kind}content-length: {BODY}\r\nconnection: close\r\n\r\n{first}"
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    let piece = vec![b' '; 16 << 10];
    let mut bytes = first.len();
    while bytes < BODY {
        let most = piece.len().min(BODY - bytes);
        match stream.write(&piece[..most]).await {
            Ok(taken) if taken > 0 => bytes += taken,
            _ => break,
        }
    }
    Some((path, bytes))
}

fn feeds_only() -> AcceptLayer {
    AcceptLayer::new(Accept::preset(Preset::Feed)).refuse_others(true)
}

async fn refused_bodies_stay_on_the_site(http: HttpClient) {
    let site = Counting::start();
    let client = http.client(&etiquette(millis(10)).accept(feeds_only()));
    for path in ["/film", "/nameless-page", "/406"] {
        let refused = client.refused(&site.url(path)).await;
        assert!(matches!(refused, Refusal::Type(_)), "{path}: {refused:?}");
        let bytes = site.bytes_of(path).await;
        assert!(bytes < BUFFERS, "{path}: {bytes} of {BODY} bytes");
    }
    // The same body, asked for: all of it.
    let page = client.get(&site.url("/feed")).await.unwrap();
    assert_eq!(page.body.len(), BODY);
    assert_eq!(site.bytes_of("/feed").await, BODY);
}

async fn a_406_is_an_error_and_no_second_try(http: HttpClient) {
    let site = Site::builder()
        .at("/feed", Answer::status(406))
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(10)).accept(feeds_only()));
    let refused = refusal(client.get(&site.url("/feed")).await);
    assert_eq!(refused.kind(), "not_acceptable");
    let Refusal::Type(refused) = refused else {
        panic!("{refused:?}")
    };
    let pages = site.log().pages();
    let [asked] = &pages[..] else {
        panic!("{pages:?}")
    };
    assert_eq!(asked.headers["accept"], refused.accept);
    // Languages are the caller's business, codings that of whoever decodes them.
    assert!(!asked.headers.contains_key("accept-language"));
    assert!(!asked.headers.contains_key("accept-encoding"));
}

async fn vary_on_accept_keeps_the_forms_apart(http: HttpClient) {
    let site = Site::builder()
        .at(
            "/news",
            Script::call(|arrival| {
                let accept = arrival.headers["accept"].to_str().unwrap();
                let answer = if accept.starts_with("text/html") {
                    Answer::html("a page")
                } else {
                    Answer::of("application/atom+xml", "<feed/>")
                };
                answer
                    .header("vary", "Accept")
                    .header("cache-control", "max-age=60")
            }),
        )
        .start()
        .await
        .unwrap();
    let store = MemoryStore::default();
    let reader = |preset| {
        let layer = AcceptLayer::new(Accept::preset(preset)).refuse_others(true);
        let stack = etiquette(millis(10)).accept(layer);
        http.client(&stack.cache(|cache| cache.store(store.clone())))
    };
    let (feeds, pages) = (reader(Preset::Feed), reader(Preset::Page));
    for _ in 0..2 {
        let feed = feeds.get(&site.url("/news")).await.unwrap();
        let page = pages.get(&site.url("/news")).await.unwrap();
        assert_eq!(
            (&feed.body[..], &page.body[..]),
            (&b"<feed/>"[..], &b"a page"[..])
        );
    }
    assert_eq!(site.log().pages().len(), 2, "each form is asked for once");
}
