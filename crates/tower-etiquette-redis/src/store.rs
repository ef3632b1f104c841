//! The handle, and the names of keys.

use std::fmt;
use std::sync::Arc;

use crate::connection::SharedConnection;
use crate::settings::Settings;

/// A handle to the server. Cloning it shares one connection.
#[derive(Clone)]
pub struct RedisStore(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) connection: SharedConnection,
    pub(crate) script: redis::Script,
    /// How late a grant may be acted upon, in microseconds: what a response of the server takes.
    pub(crate) late: std::sync::atomic::AtomicU64,
    /// Tells this process's leases from those of others.
    pub(crate) owner: u64,
}

impl RedisStore {
    /// The part of a key that Cluster looks at.
    pub(crate) fn bucket(name: &str) -> u64 {
        hash(name) % BUCKETS
    }

    pub(crate) fn key(&self, bucket: u64, kind: &str, name: &str) -> String {
        let namespace = &self.0.settings.namespace;
        if name.is_empty() {
            format!("{namespace}:1:{{{bucket}}}:{kind}")
        } else {
            format!("{namespace}:1:{{{bucket}}}:{kind}:{name}")
        }
    }
}

pub(crate) const BUCKETS: u64 = 64;

/// FNV-1a: all processes must find the same key.
pub(crate) fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("namespace", &self.0.settings.namespace)
            .field("lease", &self.0.settings.lease)
            .finish_non_exhaustive()
    }
}
