//! The folders that vectors are read from.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The folders that hold vectors, each with the same sub-folders and file names.
#[derive(Clone, Debug)]
pub struct Vectors {
    folders: Vec<PathBuf>,
    /// Whether each file has to be in one of the folders.
    complete: bool,
}

impl Vectors {
    /// The committed folder and, if the environment variable `ETIQUETTE_VECTORS` names one, a second one.
    #[must_use]
    pub fn from_env() -> Self {
        let extra = std::env::var_os("ETIQUETTE_VECTORS").map(PathBuf::from);
        Self {
            folders: [Self::committed()].into_iter().chain(extra).collect(),
            complete: true,
        }
    }

    /// One folder, read as the second one of [`Vectors::from_env`] is. It need not hold every file.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folders: vec![folder.into()],
            complete: false,
        }
    }

    /// The folder of the committed vectors.
    #[must_use]
    pub fn committed() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
    }

    /// Reads `file`, for example `"robots/matching.json"`, from every folder that has it.
    ///
    /// # Panics
    /// When a file is there but is not JSON: a broken vector file is a broken test. And when none of the folders of
    /// [`Vectors::from_env`] has it.
    #[must_use]
    pub fn documents(&self, file: &str) -> Vec<Value> {
        let found: Vec<Value> = self
            .folders
            .iter()
            .map(|folder| folder.join(file))
            .filter(|path| path.is_file())
            .map(|path| {
                let text = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
            })
            .collect();
        assert!(!found.is_empty() || !self.complete, "no folder has {file}");
        found
    }

    /// The rows of `file` from every folder: the array at `key`, or the document itself where `key` is empty.
    ///
    /// A row that stands in both folders with the same content is played once.
    ///
    /// # Panics
    /// As [`Vectors::documents`], and when there is no such array.
    #[must_use]
    pub fn rows(&self, file: &str, key: &str) -> Vec<Value> {
        let mut seen = BTreeSet::new();
        let mut rows = Vec::new();
        for document in self.documents(file) {
            let list = if key.is_empty() {
                &document
            } else {
                &document[key]
            };
            let list = list
                .as_array()
                .unwrap_or_else(|| panic!("{file}: no array at {key:?}"));
            for row in list {
                if seen.insert(row.to_string()) {
                    rows.push(row.clone());
                }
            }
        }
        rows
    }
}
