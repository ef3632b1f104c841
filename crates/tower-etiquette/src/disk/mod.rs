//! Responses and robots.txt files in a folder, so that a client which is started again does not ask again.
//!
//! **What is where.** `etiquette.redb` holds the heads and what is known of robots.txt; `bodies/` one file for each
//! body. A body is written to a file of another name, renamed, and only then named by a record; it is checked against
//! its length and checksum before its first octet is handed on. What is missing, cut or damaged is a miss.
//!
//! **Durable.** Every change is synced before it counts as done: a removed entry does not come back, whatever kills the
//! process. Bodies are not synced by themselves: after a loss of power one may be damaged, and then is a miss.
//!
//! **Bounded.** Bodies and heads together stay below the limit (1 GiB unless told otherwise); what was unused for
//! longest goes first. The database file needs some room of its own, about that of the heads again.
//!
//! **One process.** A second one that opens the folder is refused with [`DiskError::InUse`].
//!
//! **Not kept**: answers that were selected by a Cookie or an Authorization, since the folder would hold the secret.
//!
//! Trouble with the folder never fails a request; [`DiskStore::on_trouble`] tells of it.

mod files;
mod index;
mod robots;
mod store;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

pub use store::DiskStore;

/// Why a folder cannot be used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DiskError {
    /// Another process uses it.
    InUse(PathBuf),
    /// It cannot be read or written.
    Unusable(PathBuf, Arc<dyn Error + Send + Sync>),
}

impl DiskError {
    fn unusable(folder: &std::path::Path, cause: impl Error + Send + Sync + 'static) -> Self {
        Self::Unusable(folder.to_owned(), Arc::new(cause))
    }
}

impl PartialEq for DiskError {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::InUse(a), Self::InUse(b)) => a == b,
            (Self::Unusable(a, x), Self::Unusable(b, y)) => {
                a == b && x.to_string() == y.to_string()
            }
            _ => false,
        }
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(folder) => write!(f, "another process uses {}", folder.display()),
            Self::Unusable(folder, _) => write!(f, "{} cannot be used", folder.display()),
        }
    }
}

impl Error for DiskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::InUse(_) => None,
            Self::Unusable(_, cause) => Some(&**cause),
        }
    }
}
