use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use etiquette_core::Now;
use tokio::time::Instant;

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
        *self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StartCheck for FetchStart {
    /// Asked while the request waits, and for the last time just before it starts.
    fn check(&self, _: Now) -> StartDecision {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = None;
        StartDecision::Start {
            crawl_delay: self.crawl_delay,
        }
    }

    fn started(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn refresh(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}
