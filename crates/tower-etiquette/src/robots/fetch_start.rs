use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use etiquette_core::Now;
use tokio::time::Instant;

use crate::lock::lock;
use crate::start_check::{StartCheck, StartDecision};

/// The check of a request for robots.txt itself: always allowed. Knows since when it is under way, if it is.
#[derive(Debug)]
pub(super) struct FetchStart {
    crawl_delay: Option<Duration>,
    at: Mutex<Option<Instant>>,
}

impl FetchStart {
    pub(super) fn new(crawl_delay: Option<Duration>) -> Self {
        Self {
            crawl_delay,
            at: Mutex::new(None),
        }
    }

    /// When it started.
    pub(super) fn at(&self) -> Option<Instant> {
        *lock(&self.at)
    }
}

impl StartCheck for FetchStart {
    /// Asked while the request waits, and for the last time just before it starts.
    fn check(&self, _: Now) -> StartDecision {
        *lock(&self.at) = None;
        StartDecision::Start {
            crawl_delay: self.crawl_delay,
        }
    }

    fn started(&self) {
        *lock(&self.at) = Some(Instant::now());
    }

    fn refresh(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}
