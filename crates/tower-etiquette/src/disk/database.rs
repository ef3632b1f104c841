//! The database file: opened, and opened anew where it has failed.
//!
//! After a failed write, such as on a full disk, the database refuses everything until it is opened again. A client that
//! runs for weeks must not be left without its folder for that: it is tried again, but not more often than a repair may
//! cost.

use std::fs;
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use etiquette_core::Clock as _;
use redb::{
    CommitError, DatabaseError, ReadTransaction, ReadableDatabase, StorageError, TableError,
    TransactionError, WriteTransaction,
};

use super::error::DiskError;
use crate::lock::lock;
use crate::{BoxError, TokioClock};

const NAME: &str = "etiquette.redb";

/// A database that has failed is opened anew no sooner.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(10);

pub(super) struct Database {
    folder: PathBuf,
    state: Mutex<State>,
}

struct State {
    /// `None` while it cannot be opened.
    open: Option<Arc<redb::Database>>,
    /// When it failed, or was last tried in vain.
    failed: Option<Instant>,
}

/// Why a folder was not opened.
pub(super) enum Opening {
    Refused(DiskError),
    /// The database is none, or was damaged.
    Damaged(BoxError),
}

impl Database {
    /// Opens the file, and makes it where it is not there.
    pub(super) fn open(folder: &Path) -> Result<Self, Opening> {
        match redb::Database::create(folder.join(NAME)) {
            Ok(open) => Ok(Self {
                folder: folder.to_owned(),
                state: Mutex::new(State {
                    open: Some(Arc::new(open)),
                    failed: None,
                }),
            }),
            Err(DatabaseError::DatabaseAlreadyOpen) => {
                Err(Opening::Refused(DiskError::InUse(folder.to_owned())))
            }
            Err(error) => Err(Opening::of(folder, error.into())),
        }
    }

    /// Puts a file away that cannot be used.
    pub(super) fn set_aside(folder: &Path) -> io::Result<()> {
        fs::rename(folder.join(NAME), folder.join(format!("{NAME}.damaged")))
    }

    pub(super) fn begin_read(&self) -> Result<ReadTransaction, BoxError> {
        Ok(self.get()?.begin_read()?)
    }

    /// Waits for the writer before it, without holding readers up.
    pub(super) fn begin_write(&self) -> Result<WriteTransaction, BoxError> {
        Ok(self.get()?.begin_write()?)
    }

    /// Looks at an error of some work on it.
    pub(super) fn failed_with(&self, error: &BoxError) {
        if let Some(
            StorageError::Io(_)
            | StorageError::PreviousIo
            | StorageError::DatabaseClosed
            | StorageError::LockPoisoned(_),
        ) = storage_error(error)
        {
            let mut state = self.lock();
            if state.open.take().is_some() {
                state.failed = Some(TokioClock.monotonic());
            }
        }
    }

    fn get(&self) -> Result<Arc<redb::Database>, BoxError> {
        let mut state = self.lock();
        if let Some(open) = &state.open {
            return Ok(Arc::clone(open));
        }
        let now = TokioClock.monotonic();
        let since = state
            .failed
            .map(|failed| now.saturating_duration_since(failed));
        if since.is_some_and(|since| since < TRY_AGAIN_AFTER) {
            return Err("the database failed less than 10 s ago".into());
        }
        state.failed = Some(now);
        let path = self.folder.join(NAME);
        let opened = panic::catch_unwind(|| redb::Database::create(path));
        let opened = Arc::new(opened.map_err(|_| "the database file is corrupt")??);
        state.open = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Opening {
    /// What an error while opening means: out of reach, or not to be used.
    pub(super) fn of(folder: &Path, error: BoxError) -> Self {
        let out_of_reach = match storage_error(&error) {
            Some(StorageError::Io(error)) => !matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ),
            Some(StorageError::PreviousIo) => true,
            _ => error.is::<io::Error>(),
        };
        if out_of_reach {
            Self::Refused(DiskError::Unusable(folder.to_owned(), error.into()))
        } else {
            Self::Damaged(error)
        }
    }
}

/// The database's errors wrap this one, and do not give it as their source.
fn storage_error(error: &BoxError) -> Option<&StorageError> {
    if let Some(error) = error.downcast_ref() {
        return Some(error);
    }
    match (
        error.downcast_ref(),
        error.downcast_ref(),
        error.downcast_ref(),
        error.downcast_ref(),
    ) {
        (Some(CommitError::Storage(error)), ..)
        | (_, Some(TransactionError::Storage(error)), ..)
        | (_, _, Some(TableError::Storage(error)), _)
        | (_, _, _, Some(DatabaseError::Storage(error))) => Some(error),
        _ => None,
    }
}
