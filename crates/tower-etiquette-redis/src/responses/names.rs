//! Where the variants and bodies of a URL lie.

use etiquette_core::store::ResponseKey;

use crate::store::{RedisStore, hash};

/// The bytes of one piece.
pub(super) const PIECE: usize = 256 << 10;
/// How many pieces are under way at once: a large body neither blocks the connection for others nor is sent twice.
pub(super) const PIECES_AT_ONCE: usize = 4;

/// The keys of one URL.
pub(super) struct Names {
    pub(super) bucket: u64,
    pub(super) variants: String,
    bodies: String,
}

impl Names {
    pub(super) fn body(&self, id: &str) -> String {
        format!("{}:{id}", self.bodies)
    }
}

impl RedisStore {
    pub(super) fn names(&self, key: &ResponseKey) -> Names {
        let url = key.as_str();
        let bucket = Self::bucket(url);
        // Two URLs of one name displace each other and are never taken for one another.
        let name = format!("{:016x}{:016x}", hash(url), hash(&format!("{url}\n")));
        Names {
            bucket,
            variants: self.key(bucket, "v", &name),
            bodies: self.key(bucket, "b", &name),
        }
    }
}
