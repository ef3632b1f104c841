//! What a store for robots.txt files has to do.

use std::fmt;
use std::time::Duration;

use etiquette_robots::ProductToken;

use super::failed::StoreFuture;
use crate::Origin;
use crate::decide::robots_txt::StoredRobots;

/// What the robots.txt of an origin is stored under: sites may tell two clients different things.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RobotsKey {
    /// The scheme, host and port whose rules these are.
    pub origin: Origin,
    /// The crawl token under whose name the file was read.
    pub token: ProductToken,
}

/// A store for what is known of robots.txt files, across restarts or processes.
///
/// Every method may fail. The layer then goes on with what it knows itself; it never allows anything because a store
/// is down.
///
/// # Cancel safety
/// A dropped future of [`RobotsStore::save`] leaves the old record or the new one, nothing between.
pub trait RobotsStore: fmt::Debug + Send + Sync + 'static {
    /// What is known of the file.
    fn load<'a>(&'a self, key: &'a RobotsKey) -> StoreFuture<'a, Option<StoredRobots>>;

    /// Keeps a record in place of the one before.
    fn save<'a>(&'a self, key: &'a RobotsKey, record: StoredRobots) -> StoreFuture<'a, ()>;

    /// Asks to be the one process that reads the file now. A store of one process always says
    /// [`Claim::Granted`], which is the default.
    fn claim<'a>(&'a self, _key: &'a RobotsKey) -> StoreFuture<'a, Claim> {
        Box::pin(std::future::ready(Ok(Claim::Granted)))
    }
}

/// The answer of [`RobotsStore::claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// Read it. The claim ends with [`RobotsStore::save`], or by itself after a time that the store sets.
    Granted,
    /// Another process is reading it: look again after this time.
    Taken(Duration),
}
