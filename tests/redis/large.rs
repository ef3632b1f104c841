//! Bodies that are too large to be held: how much memory a process needs that stores and reads one.

use std::convert::Infallible;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use etiquette_tests::client::get;
use etiquette_tests::process;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use tower::{Layer, ServiceExt, service_fn};
use tower_etiquette::BoxError;
use tower_etiquette::conditional_cache::ConditionalCacheLayer;
use tower_etiquette_redis::RedisStore;

use crate::server::Server;

const LENGTH: usize = 48 << 20;
/// The layer holds a body up to this.
const HELD: usize = 1 << 20;
const CHUNK: usize = 64 << 10;
/// What a process may need in addition to store and to read it.
const MORE: usize = 8 << 20;

/// A body whose bytes follow from their position, made as it is read.
struct Made {
    at: usize,
    declared: bool,
}

fn byte(at: usize) -> u8 {
    (at % 251) as u8 ^ (at / 65_521 % 256) as u8
}

impl Body for Made {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let end = (self.at + CHUNK).min(LENGTH);
        let chunk: Bytes = (self.at..end).map(byte).collect();
        self.at = end;
        Poll::Ready((!chunk.is_empty()).then(|| Ok(Frame::data(chunk))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        if self.declared {
            http_body::SizeHint::with_exact((LENGTH - self.at) as u64)
        } else {
            http_body::SizeHint::default()
        }
    }
}

/// Reads a body, looks at each byte and keeps none.
async fn check<B>(body: B) -> usize
where
    B: Body<Data = Bytes, Error = BoxError>,
{
    let mut body = std::pin::pin!(body);
    let mut at = 0;
    while let Some(frame) = body.frame().await {
        let chunk = frame.unwrap().into_data().unwrap();
        for (offset, &found) in chunk.iter().enumerate() {
            assert_eq!(found, byte(at + offset), "byte {}", at + offset);
        }
        at += chunk.len();
    }
    at
}

/// The most memory that this process ever had, in bytes, where the system tells.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: usize = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Not a test by itself: what a process of its own does, so that nobody else's memory counts.
#[test]
fn reader() {
    let Ok(task) = std::env::var("ETIQUETTE_LARGE_BODY") else {
        return;
    };
    let (server, namespace) = task.split_once(' ').unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let asked = Arc::new(AtomicUsize::new(0));
        for declared in [true, false] {
            let store = RedisStore::builder(server)
                .namespace(format!("{namespace}:{declared}"))
                .timeout(std::time::Duration::from_secs(10))
                .connect()
                .await
                .unwrap();
            let count = Arc::clone(&asked);
            let site = service_fn(move |_: Request<Empty<Bytes>>| {
                count.fetch_add(1, Ordering::SeqCst);
                let body = Made { at: 0, declared };
                let response = Response::builder().header("cache-control", "max-age=600");
                std::future::ready(response.body(body))
            });
            let layer = ConditionalCacheLayer::new().max_body(HELD).store(store);
            let client = layer.layer(site);
            let get = || get("http://site.example/large");
            let before = peak();
            for _ in 0..2 {
                let response = client.clone().oneshot(get()).await.unwrap();
                assert_eq!(check(response.into_body()).await, LENGTH);
            }
            assert_eq!(
                asked.swap(0, Ordering::SeqCst),
                1,
                "the second came from the store"
            );
            if let (Some(before), Some(after)) = (before, peak()) {
                let more = after - before;
                println!("{} KiB for a body of {} KiB", more >> 10, LENGTH >> 10);
                assert!(more < MORE, "{} KiB more than before", more >> 10);
            }
        }
    });
}

#[tokio::test]
async fn large_bodies_stream_without_being_held() {
    let Some(server) = Server::given_or_started() else {
        return;
    };
    let output = process::test("large::reader")
        .env(
            "ETIQUETTE_LARGE_BODY",
            format!("{} {}", server.url(), server.namespace()),
        )
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for line in said.lines().filter(|line| line.contains("KiB")) {
        println!("{line}");
    }
}
