//! Stores: what outlives a process, and what several processes share.
//!
//! | trait | what it keeps | given to | at hand |
//! | --- | --- | --- | --- |
//! | [`ResponseStore`] | responses | `ConditionalCacheLayer::store` | [`MemoryStore`], `disk::DiskStore` |
//! | [`RobotsStore`] | robots.txt files | `RobotsLayer::store` | `disk::DiskStore` |
//! | [`journal::HostJournal`] | pauses and backoff levels | `Hosts::keep_in` | `disk::DiskStore` |
//! | [`host::HostStore`] | budgets that processes share | `HostsBuilder::store` | |
//!
//! `Etiquette::keep_in` takes one store for the first three. The crate `tower-etiquette-redis` has all but the journal on
//! Redis or Valkey. A store that fails never fails a request: it is as good as none.
//!
//! A store of one's own needs nothing but this crate:
//!
//! ```
//! use std::collections::HashMap;
//! use std::future::ready;
//! use std::sync::{Arc, Mutex};
//! use tower_etiquette::RobotsLayer;
//! use tower_etiquette::store::{RobotsKey, RobotsStore, StoreFuture, StoredRobots};
//!
//! /// robots.txt files in a map.
//! #[derive(Debug, Default)]
//! struct Files(Mutex<HashMap<RobotsKey, StoredRobots>>);
//!
//! impl RobotsStore for Files {
//!     fn load<'a>(&'a self, key: &'a RobotsKey) -> StoreFuture<'a, Option<StoredRobots>> {
//!         Box::pin(ready(Ok(self.0.lock().unwrap().get(key).cloned())))
//!     }
//!
//!     fn save<'a>(&'a self, key: &'a RobotsKey, record: StoredRobots) -> StoreFuture<'a, ()> {
//!         self.0.lock().unwrap().insert(key.clone(), record);
//!         Box::pin(ready(Ok(())))
//!     }
//! }
//!
//! let layer = RobotsLayer::new().store(Arc::new(Files::default()));
//! # drop(layer);
//! ```

pub use etiquette_core::decide::cache_policy::{Extent, Selecting, StoredResponse};
pub use etiquette_core::decide::host::HostRecord;
pub use etiquette_core::decide::robots_txt::{
    StoredCopy, StoredFailure, StoredOutcome, StoredRobots,
};
pub use etiquette_core::store::*;

pub use crate::conditional_cache::MemoryStore;
