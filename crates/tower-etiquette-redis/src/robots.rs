//! robots.txt files: one record for each origin and token, and a claim on reading it.

use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::robots_txt::{StoredOutcome, StoredRobots};
use etiquette_core::store::{Claim, RobotsKey, RobotsStore, StoreFuture};
use redis::{ExistenceCheck, SetExpiry, SetOptions, Value};

use crate::store::RedisStore;

/// RFC 9309, 2.4: an old copy may be used for 30 days while the file cannot be reached.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How soon a process that waits for another's reading looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl RobotsStore for RedisStore {
    fn load<'a>(&'a self, key: &'a RobotsKey) -> StoreFuture<'a, Option<StoredRobots>> {
        let (bucket, [record, _]) = self.robots_keys(key);
        Box::pin(async move {
            let fields: (Option<Vec<u8>>, Option<Vec<u8>>) = self
                .0
                .connection
                .call("read a robots.txt", bucket, |mut server| async move {
                    redis::cmd("HMGET")
                        .arg(record)
                        .arg("about")
                        .arg("bytes")
                        .query_async(&mut server.connection)
                        .await
                })
                .await?;
            let (about, bytes) = fields;
            Ok(about.map(|about| StoredRobots::decode(&about, bytes.map(Bytes::from))))
        })
    }

    fn save<'a>(&'a self, key: &'a RobotsKey, stored: StoredRobots) -> StoreFuture<'a, ()> {
        let (bucket, [record, claim]) = self.robots_keys(key);
        Box::pin(async move {
            let mut pipe = redis::pipe();
            pipe.atomic();
            let about = stored.encode();
            match stored.copy.map(|copy| copy.outcome) {
                Some(StoredOutcome::Rules(Some(bytes))) => {
                    pipe.hset_multiple(&record, &[("about", &about[..]), ("bytes", &bytes[..])])
                        .ignore();
                }
                Some(StoredOutcome::Rules(None)) => {
                    pipe.hset(&record, "about", &about[..]).ignore();
                }
                _ => {
                    pipe.hset(&record, "about", &about[..]).ignore();
                    pipe.hdel(&record, "bytes").ignore();
                }
            }
            pipe.pexpire(&record, KEPT.as_millis() as i64).ignore();
            pipe.del(&claim).ignore();
            self.0
                .connection
                .call("keep a robots.txt", bucket, |mut server| async move {
                    pipe.query_async(&mut server.connection).await
                })
                .await
        })
    }

    fn claim<'a>(&'a self, key: &'a RobotsKey) -> StoreFuture<'a, Claim> {
        let (bucket, [_, claim]) = self.robots_keys(key);
        Box::pin(async move {
            let expiry = SetExpiry::PX(self.0.settings.robots_lease.as_millis() as u64);
            let options = SetOptions::default()
                .conditional_set(ExistenceCheck::NX)
                .with_expiration(expiry);
            let set: Value = self
                .0
                .connection
                .call("claim a robots.txt", bucket, |mut server| async move {
                    redis::cmd("SET")
                        .arg(claim)
                        .arg(self.0.owner)
                        .arg(options)
                        .query_async(&mut server.connection)
                        .await
                })
                .await?;
            Ok(match set {
                Value::Nil => Claim::Taken(LOOK_AGAIN),
                _ => Claim::Granted,
            })
        })
    }
}

impl RedisStore {
    fn robots_keys(&self, key: &RobotsKey) -> (u64, [String; 2]) {
        let bucket = Self::bucket(key.origin.host());
        let name = format!("{}:{}", key.token.as_str(), key.origin);
        let keys = [self.key(bucket, "r", &name), self.key(bucket, "c", &name)];
        (bucket, keys)
    }
}
