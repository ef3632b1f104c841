//! Responses: the variants of a URL in one hash, each body in pieces beside it.
//!
//! A body is written before the head that names it, and a head is replaced in one step, so that a reader finds the old
//! variant or the new one. A body that a dead process left without a head vanishes with its time, and one that was
//! replaced stays a minute for those who are reading it.

mod names;
mod pieces;
mod record;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::store::{
    BodyReader, BodyWriter, ResponseKey, ResponseStore, StoreFailed, Variant,
};
use redis::RedisResult;

use crate::store::RedisStore;
use names::{Names, PIECE, PIECES_AT_ONCE};
use pieces::{PieceReader, PieceWriter};
use record::Record;

/// Bodies as small as this are kept with the head, which spares a round trip.
const SMALL: usize = 8 << 10;
/// More variants of one URL are not kept: a site that varies on everything would fill the server.
const VARIANTS: usize = 64;
/// How long a replaced body stays.
const LINGERS: i64 = 60_000;

impl ResponseStore for RedisStore {
    async fn get(&self, key: &ResponseKey) -> Result<Vec<Variant>, StoreFailed> {
        let mut records = self.records(key).await?;
        records.sort_by_key(|(_, record)| std::cmp::Reverse(record.stored));
        let variants = records.into_iter().map(|(_, record)| Variant {
            head: record.head.into(),
            length: record.length,
            body: record.small,
        });
        Ok(variants.collect())
    }

    async fn body(
        &self,
        key: &ResponseKey,
        head: &StoredResponse,
    ) -> Result<Option<Bytes>, StoreFailed> {
        let Some(record) = self.record_of(key, head).await? else {
            return Ok(None);
        };
        if record.small.is_some() {
            return Ok(record.small);
        }
        let names = self.names(key);
        let name = names.body(&record.body);
        let length = usize::try_from(record.length).unwrap_or(usize::MAX);
        if length > self.0.settings.max_body {
            return Ok(None);
        }
        let mut body = BytesMut::with_capacity(length);
        for first in (0..length.div_ceil(PIECE)).step_by(PIECES_AT_ONCE) {
            let mut ask = redis::cmd("HMGET");
            ask.arg(&name);
            for piece in first..first + PIECES_AT_ONCE {
                ask.arg(piece);
            }
            let pieces: Vec<Option<Vec<u8>>> = self
                .0
                .connection
                .call("read a body", names.bucket, |mut server| async move {
                    ask.query_async(&mut server.connection).await
                })
                .await?;
            for piece in pieces.into_iter().flatten() {
                body.extend_from_slice(&piece);
            }
        }
        Ok((body.len() == length).then(|| body.freeze()))
    }

    async fn put(
        &self,
        key: &ResponseKey,
        head: StoredResponse,
        body: Bytes,
        replaced: &[Selecting],
    ) -> Result<(), StoreFailed> {
        if body.len() > self.0.settings.max_body {
            return Err(StoreFailed::new("keep a body", "it is too large"));
        }
        let names = self.names(key);
        let keep = millis(self.0.settings.keep);
        let record = Record::new(key.as_str(), head, &body, SMALL);
        if record.small.is_none() {
            self.put_body(&names, &record.body, &body, keep).await?;
        }
        self.put_record(key, &record, replaced).await
    }

    async fn update(
        &self,
        key: &ResponseKey,
        old: &Selecting,
        head: StoredResponse,
    ) -> Result<(), StoreFailed> {
        let names = self.names(key);
        let records = self.records(key).await?;
        for (field, mut record) in records {
            if record.head.selecting() != old {
                continue;
            }
            let before = record.encode();
            record.head = head;
            let keep = millis(self.0.settings.keep);
            // Only what is still as it was read: a variant that was removed or replaced meanwhile stays so.
            let script = redis::Script::new(
                "if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
                 redis.call('HDEL', KEYS[1], ARGV[1])
                 redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
                 redis.call('PEXPIRE', KEYS[1], ARGV[5])
                 redis.call('PEXPIRE', KEYS[2], ARGV[5])
                 return 1",
            );
            return self
                .0
                .connection
                .call("renew a response", names.bucket, |mut server| async move {
                    let mut call = script.key(&names.variants);
                    call.key(names.body(&record.body))
                        .arg(field)
                        .arg(before)
                        .arg(record.field())
                        .arg(record.encode())
                        .arg(keep);
                    let _: i64 = call.invoke_async(&mut server.connection).await?;
                    Ok(())
                })
                .await;
        }
        Ok(())
    }

    async fn remove(
        &self,
        key: &ResponseKey,
        which: Option<&Selecting>,
    ) -> Result<(), StoreFailed> {
        let names = self.names(key);
        let records = self.records(key).await?;
        let mut pipe = redis::pipe();
        pipe.atomic();
        for (field, record) in &records {
            if which.is_none_or(|which| record.head.selecting() == which) {
                pipe.unlink(names.body(&record.body)).ignore();
                pipe.hdel(&names.variants, field).ignore();
            }
        }
        if which.is_none() {
            pipe.unlink(&names.variants).ignore();
        }
        if pipe.is_empty() {
            return Ok(());
        }
        self.send("remove a response", names.bucket, pipe).await
    }

    async fn read(
        &self,
        key: &ResponseKey,
        head: &StoredResponse,
        from: u64,
    ) -> Result<Option<Box<dyn BodyReader>>, StoreFailed> {
        let Some(record) = self.record_of(key, head).await? else {
            return Ok(None);
        };
        let reader = PieceReader::new(self.clone(), self.names(key), record, from);
        Ok(Some(Box::new(reader)))
    }

    fn write(&self, key: &ResponseKey, length: Option<u64>) -> Option<Box<dyn BodyWriter>> {
        let most = self.0.settings.max_body as u64;
        let fits = length.is_none_or(|length| length <= most);
        fits.then(|| -> Box<dyn BodyWriter> {
            Box::new(PieceWriter::new(self.clone(), key.clone()))
        })
    }
}

impl RedisStore {
    /// What is stored of a URL; what cannot be read is as if it were not there.
    async fn records(&self, key: &ResponseKey) -> Result<Vec<(Vec<u8>, Record)>, StoreFailed> {
        let names = self.names(key);
        let fields: Vec<(Vec<u8>, Vec<u8>)> = self
            .0
            .connection
            .call("read a response", names.bucket, |mut server| async move {
                redis::cmd("HGETALL")
                    .arg(&names.variants)
                    .query_async(&mut server.connection)
                    .await
            })
            .await?;
        let records = fields.into_iter().filter_map(|(field, value)| {
            let record = Record::decode(&value, key.as_str())?;
            Some((field, record))
        });
        Ok(records.collect())
    }

    /// The record of a head that was read before; `None` when it is gone, or another process has stored another response
    /// meanwhile, whose body is not the one of this head.
    async fn record_of(
        &self,
        key: &ResponseKey,
        head: &StoredResponse,
    ) -> Result<Option<Record>, StoreFailed> {
        let records = self.records(key).await?;
        let found = records
            .into_iter()
            .find(|(_, record)| record.head.selecting() == head.selecting());
        Ok(found.map(|(_, record)| record).filter(|record| {
            record.head.initial_age() == head.initial_age()
                && record.head.headers() == head.headers()
        }))
    }

    /// Keeps a record whose body is stored, in place of those that it replaces.
    async fn put_record(
        &self,
        key: &ResponseKey,
        record: &Record,
        replaced: &[Selecting],
    ) -> Result<(), StoreFailed> {
        let names = self.names(key);
        let keep = millis(self.0.settings.keep);
        let known = self.records(key).await?;
        let mut pipe = redis::pipe();
        pipe.atomic();
        let own = record.field();
        let mut others = Vec::new();
        for (field, old) in known {
            let selecting = old.head.selecting();
            let goes = field == own
                || selecting == record.head.selecting()
                || replaced.contains(selecting);
            if goes {
                pipe.pexpire(names.body(&old.body), LINGERS).ignore();
                if field != own {
                    pipe.hdel(&names.variants, field).ignore();
                }
            } else {
                others.push((old.stored, field, old.body));
            }
        }
        others.sort();
        for (_, field, body) in others.iter().rev().skip(VARIANTS - 1) {
            pipe.hdel(&names.variants, field).ignore();
            pipe.pexpire(names.body(body), LINGERS).ignore();
        }
        pipe.hset(&names.variants, own, record.encode()).ignore();
        pipe.pexpire(&names.variants, keep).ignore();
        if record.small.is_none() {
            pipe.pexpire(names.body(&record.body), keep).ignore();
        }
        self.send("keep a response", names.bucket, pipe).await
    }

    async fn put_body(
        &self,
        names: &Names,
        id: &str,
        body: &Bytes,
        keep: i64,
    ) -> Result<(), StoreFailed> {
        let name = &names.body(id);
        for (first, pieces) in body.chunks(PIECE * PIECES_AT_ONCE).enumerate() {
            let mut pipe = redis::pipe();
            for (piece, bytes) in pieces.chunks(PIECE).enumerate() {
                pipe.hset(name, first * PIECES_AT_ONCE + piece, bytes)
                    .ignore();
            }
            pipe.pexpire(name, keep).ignore();
            self.send("keep a body", names.bucket, pipe).await?;
        }
        Ok(())
    }

    async fn send(
        &self,
        doing: &'static str,
        bucket: u64,
        pipe: redis::Pipeline,
    ) -> Result<(), StoreFailed> {
        self.0
            .connection
            .call(doing, bucket, |mut server| async move {
                let sent: RedisResult<()> = pipe.query_async(&mut server.connection).await;
                sent
            })
            .await
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4)
}
