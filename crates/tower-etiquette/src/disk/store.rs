//! [`DiskStore`]: the folder, opened, and what is done in it.

use std::fmt;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::store::{ResponseKey, StoreFailed};
use redb::ReadableTable;
use tokio::runtime::Handle;

use super::DiskError;
use super::checksum::{seal, unseal};
use super::database::{Database, Opening};
use super::files::Files;
use super::index::Index;
use super::pauses::Pauses;
use super::record::{HEADS, Record, decode, encode, size_of};
use crate::BoxError;
use crate::lock::lock;

/// So many variants of one URL stand side by side; a further one replaces the oldest.
const MAX_VARIANTS: usize = 16;

type OnError = Arc<dyn Fn(&StoreFailed) + Send + Sync>;

/// Responses, robots.txt files and the pauses of hosts in a folder; see the [module](super).
///
/// Cloning gives another handle to the same folder.
#[derive(Clone)]
pub struct DiskStore {
    pub(super) inner: Arc<Inner>,
    on_error: Option<OnError>,
}

pub(super) struct Inner {
    pub(super) database: Database,
    folder: PathBuf,
    pub(super) files: Files,
    index: Mutex<Index>,
    pub(super) pauses: Pauses,
    max_bytes: u64,
    next_body: AtomicU64,
    /// What was damaged when the folder was opened, for the first `on_error`.
    found: Mutex<Vec<StoreFailed>>,
}

impl DiskStore {
    /// The limit unless another one is given: 1 GiB.
    pub const DEFAULT_MAX_BYTES: u64 = 1 << 30;

    /// Opens a folder, and makes it where it is not there. A database that is damaged as a whole is set aside, and an
    /// empty one begun.
    ///
    /// It reads the disk: call it before the runtime is busy.
    ///
    /// # Errors
    /// [`DiskError::InUse`] when another process has it open, [`DiskError::Unusable`] when it cannot be written.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, DiskError> {
        Self::with_max_bytes(folder, Self::DEFAULT_MAX_BYTES)
    }

    /// Opens a folder that holds at most `max_bytes` bytes of bodies and heads.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn with_max_bytes(folder: impl AsRef<Path>, max_bytes: u64) -> Result<Self, DiskError> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(|error| DiskError::unusable(folder, error))?;
        let (inner, damage) = match open_inner(folder, max_bytes) {
            Ok(inner) => (inner, None),
            Err(Opening::Refused(error)) => return Err(error),
            Err(Opening::Damaged(cause)) => {
                // Damaged, or of another version: nothing in it can be used.
                Database::set_aside(folder).map_err(|error| DiskError::unusable(folder, error))?;
                match open_inner(folder, max_bytes) {
                    Ok(inner) => (inner, Some(cause)),
                    Err(Opening::Refused(error)) => return Err(error),
                    Err(Opening::Damaged(cause)) => {
                        return Err(DiskError::Unusable(folder.to_owned(), cause.into()));
                    }
                }
            }
        };
        if let Some(cause) = damage {
            lock(&inner.found).push(StoreFailed::new("read its database", cause));
        }
        Ok(Self {
            inner: Arc::new(inner),
            on_error: None,
        })
    }

    /// Calls `report` for each operation that failed, on whatever thread it failed. The request goes on as if nothing were
    /// stored. Damage that was found when the folder was opened is reported at once.
    #[must_use]
    pub fn on_error(mut self, report: impl Fn(&StoreFailed) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Arc::new(report));
        let found = std::mem::take(&mut *lock(&self.inner.found));
        for failed in &found {
            self.call_on_error(failed);
        }
        self
    }

    /// How many hosts are in a pause, or have a backoff level.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.inner.pauses.len()
    }

    pub(super) fn call_on_error(&self, failed: &StoreFailed) {
        if let Some(on_error) = &self.on_error {
            on_error(failed);
        }
    }

    pub(super) fn report(&self, doing: &'static str, cause: BoxError) -> StoreFailed {
        self.inner.database.failed_with(&cause);
        let failed = StoreFailed::new(doing, cause);
        self.call_on_error(&failed);
        failed
    }

    /// The bytes of bodies and heads: never more than the limit.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.index().bytes()
    }

    /// How many URLs have stored responses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.index().len()
    }

    /// Whether no response is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Works on the disk, away from the threads that serve.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Inner) -> Result<T, BoxError> + Send + 'static,
    ) -> Result<T, StoreFailed> {
        let inner = Arc::clone(&self.inner);
        let done = match Handle::try_current() {
            Ok(runtime) => match runtime.spawn_blocking(move || work(&inner)).await {
                Ok(done) => done,
                Err(lost) => Err(lost.into()),
            },
            Err(_) => work(&inner),
        };
        done.map_err(|cause| self.report(doing, cause))
    }
}

/// Opens the database and reads all of it, so that what is damaged shows now. The database's own code may panic over
/// bytes that it has not written.
fn open_inner(folder: &Path, max_bytes: u64) -> Result<Inner, Opening> {
    let files = Files::open(folder)
        .map_err(|error| Opening::Refused(DiskError::unusable(folder, error)))?;
    let opened = panic::catch_unwind(|| {
        let mut inner = Inner {
            database: Database::open(folder)?,
            folder: folder.to_owned(),
            files,
            index: Mutex::default(),
            pauses: Pauses::default(),
            max_bytes,
            next_body: AtomicU64::new(1),
            found: Mutex::default(),
        };
        match inner.load() {
            Ok(()) => Ok(inner),
            Err(error) => Err(Opening::of(folder, error)),
        }
    });
    match opened {
        Ok(opened) => opened,
        Err(_) => Err(Opening::Damaged("the database file is corrupt".into())),
    }
}

impl Inner {
    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        lock(&self.index)
    }

    /// Reads all records, forgets those that cannot be read, and removes the files that none names.
    fn load(&mut self) -> Result<(), BoxError> {
        let write = self.database.begin_write()?;
        let mut stock: Vec<(std::time::SystemTime, ResponseKey, u64)> = Vec::new();
        let mut bodies = std::collections::HashSet::new();
        let mut unreadable = Vec::new();
        {
            let mut table = write.open_table(HEADS)?;
            for row in table.iter()? {
                let (key, value) = row?;
                match unseal(value.value()).and_then(decode) {
                    Some(records) if !records.is_empty() => {
                        bodies.extend(records.iter().map(|record| record.body.number));
                        let at = records[0].head.initial_age().response_time;
                        stock.push((at, ResponseKey::from_stored(key.value()), size_of(&records)));
                    }
                    _ => unreadable.push(key.value().to_owned()),
                }
            }
            for key in unreadable {
                table.remove(&*key)?;
                let failed = StoreFailed::new("read a response's head", "it is damaged");
                lock(&self.found).push(failed);
            }
        }
        self.pauses.load(&write)?;
        write.commit()?;
        stock.sort_by_key(|(at, ..)| *at);
        {
            let mut index = self.index();
            for (_, key, bytes) in stock {
                index.set(&key, bytes);
            }
        }
        self.next_body = AtomicU64::new(bodies.iter().max().map_or(1, |max| max + 1));
        self.files.keep_only(|number| bodies.contains(&number))?;
        // The limit may be a lower one than last time.
        let over = self
            .index()
            .to_evict(&ResponseKey::from_stored(""), 0, self.max_bytes);
        for key in over {
            self.change(&key, |records| records.clear())?;
        }
        Ok(())
    }

    pub(super) fn records(&self, key: &ResponseKey) -> Result<Vec<Record>, BoxError> {
        if !self.index().touch(key) {
            return Ok(Vec::new());
        }
        let read = self.database.begin_read()?;
        let table = read.open_table(HEADS)?;
        match table.get(key.as_str())? {
            Some(value) => unseal(value.value())
                .and_then(decode)
                .ok_or_else(|| "a record is damaged".into()),
            None => Ok(Vec::new()),
        }
    }

    /// Changes the records of a URL in one step, synced, and then removes the bodies that no record names any more.
    pub(super) fn change(
        &self,
        key: &ResponseKey,
        change: impl FnOnce(&mut Vec<Record>),
    ) -> Result<(), BoxError> {
        let write = self.database.begin_write()?;
        let (before, records) = {
            let mut table = write.open_table(HEADS)?;
            let mut records = match table.get(key.as_str())? {
                Some(value) => unseal(value.value()).and_then(decode).unwrap_or_default(),
                None => Vec::new(),
            };
            let before: Vec<u64> = records.iter().map(|record| record.body.number).collect();
            change(&mut records);
            records.truncate(MAX_VARIANTS);
            if records.is_empty() {
                table.remove(key.as_str())?;
            } else {
                table.insert(key.as_str(), &*seal(&encode(&records)))?;
            }
            (before, records)
        };
        write.commit()?;
        self.index().set(key, size_of(&records));
        for number in before {
            if !records.iter().any(|record| record.body.number == number) {
                self.files.remove(number);
            }
        }
        Ok(())
    }

    pub(super) fn put(
        &self,
        key: &ResponseKey,
        head: StoredResponse,
        body: &[u8],
        replaced: &[Selecting],
    ) -> Result<(), BoxError> {
        let mut outdated = replaced.to_vec();
        outdated.push(head.selecting().clone());
        let outdated = move |record: &Record| outdated.contains(record.head.selecting());
        let size = body.len() as u64 + head.weight() as u64;
        if head.selecting().holds_credentials() || size > self.max_bytes {
            return self.change(key, |records| records.retain(|record| !outdated(record)));
        }
        let over = self.index().to_evict(key, size, self.max_bytes);
        for other in over {
            self.change(&other, |records| records.clear())?;
        }
        let number = self.next_body.fetch_add(1, Ordering::Relaxed);
        let id = self.files.write(number, body)?;
        let limit = self.max_bytes;
        let done = self.change(key, |records| {
            records.retain(|record| !outdated(record));
            let bytes = head.encode().len();
            records.insert(
                0,
                Record {
                    body: id,
                    head,
                    bytes,
                },
            );
            // Many large variants of one URL are bounded too.
            while records.len() > 1 && size_of(records) > limit {
                records.pop();
            }
        });
        if done.is_err() {
            self.files.remove(number);
        }
        done
    }
}

impl fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskStore")
            .field("folder", &self.inner.folder)
            .field("urls", &self.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
