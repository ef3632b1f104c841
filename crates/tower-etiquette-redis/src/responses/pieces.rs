//! Bodies that are too large to be held: written as they come, read piece by piece.

use bytes::{Bytes, BytesMut};
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::store::{BodyReader, BodyWriter, Piece, ResponseKey, StoreFailed, StoreFuture};

use super::names::{Names, PIECE, PIECES_AT_ONCE};
use super::record::{Record, new_body};
use crate::store::RedisStore;

/// So long a body stays whose next bytes do not come: what a process that died has begun vanishes then.
const UNFINISHED: i64 = 10 * 60_000;

pub(super) struct PieceReader {
    store: RedisStore,
    names: Names,
    record: Record,
    at: u64,
}

impl PieceReader {
    pub(super) fn new(store: RedisStore, names: Names, record: Record, at: u64) -> Self {
        Self {
            store,
            names,
            record,
            at,
        }
    }
}

impl BodyReader for PieceReader {
    fn next(mut self: Box<Self>) -> StoreFuture<'static, Option<Piece>> {
        Box::pin(async move {
            if self.at >= self.record.length {
                return Ok(None);
            }
            let size = PIECE as u64;
            let whole = match &self.record.small {
                Some(small) => small.clone(),
                None => {
                    let name = self.names.body(&self.record.body);
                    let piece = self.at / size;
                    let piece: Option<Vec<u8>> = self
                        .store
                        .0
                        .connection
                        .call("read a body", self.names.bucket, |mut server| async move {
                            redis::cmd("HGET")
                                .arg(name)
                                .arg(piece)
                                .query_async(&mut server.connection)
                                .await
                        })
                        .await?;
                    piece.unwrap_or_default().into()
                }
            };
            // Of a piece all is there or nothing; a small body is a piece by itself.
            let within = usize::try_from(self.at % size).unwrap_or(usize::MAX);
            let expected = size.min(self.record.length - (self.at - self.at % size));
            if whole.len() as u64 != expected {
                return Err(StoreFailed::new(
                    "read a body",
                    "a piece is not there any more",
                ));
            }
            let piece = whole.slice(within..);
            self.at += piece.len() as u64;
            let rest: Box<dyn BodyReader> = self;
            Ok(Some((piece, rest)))
        })
    }
}

pub(super) struct PieceWriter {
    store: RedisStore,
    key: ResponseKey,
    body: String,
    length: u64,
    /// How many pieces are written.
    written: usize,
    /// What does not make a piece yet.
    rest: BytesMut,
}

impl PieceWriter {
    pub(super) fn new(store: RedisStore, key: ResponseKey) -> Self {
        Self {
            store,
            key,
            body: new_body(),
            length: 0,
            written: 0,
            rest: BytesMut::new(),
        }
    }

    async fn send(&mut self, pieces: Vec<Bytes>) -> Result<(), StoreFailed> {
        let names = self.store.names(&self.key);
        let name = names.body(&self.body);
        for pieces in pieces.chunks(PIECES_AT_ONCE) {
            let mut pipe = redis::pipe();
            for piece in pieces {
                pipe.hset(&name, self.written, &piece[..]).ignore();
                self.written += 1;
            }
            pipe.pexpire(&name, UNFINISHED).ignore();
            self.store.send("keep a body", names.bucket, pipe).await?;
        }
        Ok(())
    }
}

impl BodyWriter for PieceWriter {
    fn write(mut self: Box<Self>, bytes: Bytes) -> StoreFuture<'static, Box<dyn BodyWriter>> {
        Box::pin(async move {
            self.length += bytes.len() as u64;
            if self.length > self.store.0.settings.max_body as u64 {
                return Err(StoreFailed::new("keep a body", "it is too large"));
            }
            self.rest.extend_from_slice(&bytes);
            let mut pieces = Vec::new();
            while self.rest.len() >= PIECE {
                pieces.push(self.rest.split_to(PIECE).freeze());
            }
            self.send(pieces).await?;
            let writer: Box<dyn BodyWriter> = self;
            Ok(writer)
        })
    }

    fn finish(
        mut self: Box<Self>,
        head: StoredResponse,
        replaced: Vec<Selecting>,
    ) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            if !self.rest.is_empty() {
                let rest = self.rest.split().freeze();
                self.send(vec![rest]).await?;
            }
            let record = Record::apart(self.key.as_str(), head, self.body.clone(), self.length);
            self.store.put_record(&self.key, &record, &replaced).await
        })
    }
}
