use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    pub(super) fn unusable(folder: &Path, cause: impl Error + Send + Sync + 'static) -> Self {
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
            Self::Unusable(folder, _) => write!(f, "cannot read or write {}", folder.display()),
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
