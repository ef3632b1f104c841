//! One file for each body.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::checksum::checksum;

/// The folder of the bodies.
#[derive(Debug)]
pub(super) struct Files(PathBuf);

/// What a record says of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyId {
    pub(super) number: u64,
    pub(super) length: u64,
    pub(super) checksum: u64,
}

impl Files {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let bodies = folder.join("bodies");
        fs::create_dir_all(&bodies)?;
        Ok(Self(bodies))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.0.join(format!("{number:016x}"))
    }

    /// Writes a body under a number that was never used; it is there as a whole or not at all.
    pub(super) fn write(&self, number: u64, body: &[u8]) -> io::Result<BodyId> {
        let unfinished = self.0.join(format!("{number:016x}.new"));
        let written = File::create(&unfinished)
            .and_then(|mut file| file.write_all(body))
            .and_then(|()| fs::rename(&unfinished, self.path(number)));
        if let Err(error) = written {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(BodyId {
            number,
            length: body.len() as u64,
            checksum: checksum(body),
        })
    }

    /// The body, if it is what the record says.
    pub(super) fn read(&self, id: &BodyId) -> io::Result<Bytes> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a body file is damaged");
        let mut file = File::open(self.path(id.number))?;
        if file.metadata()?.len() != id.length {
            return Err(damaged());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(id.length).map_err(|_| damaged())?);
        file.read_to_end(&mut bytes)?;
        if bytes.len() as u64 != id.length || checksum(&bytes) != id.checksum {
            return Err(damaged());
        }
        Ok(bytes.into())
    }

    /// Removes a body. One that cannot be removed now is removed when the folder is opened again.
    pub(super) fn remove(&self, number: u64) {
        let _ = fs::remove_file(self.path(number));
    }

    /// Removes the files that no record names: what a killed process left.
    pub(super) fn keep_only(&self, named: impl Fn(u64) -> bool) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let number = entry
                .file_name()
                .to_str()
                .filter(|name| name.len() == 16)
                .and_then(|name| u64::from_str_radix(name, 16).ok());
            if !number.is_some_and(&named) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}
