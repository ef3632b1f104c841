//! What is known of robots.txt files, in the same folder.

use etiquette_core::decide::robots_txt::{StoredOutcome, StoredRobots};
use etiquette_core::store::{RobotsKey, RobotsStore, StoreFuture};
use redb::{TableDefinition, TableError};

use super::checksum::{seal, unseal};
use super::store::DiskStore;

/// All but the bytes of the files.
const KNOWN: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("robots 2");
/// The bytes of the files, written only when they change.
const BYTES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("robots bytes 2");

fn name(key: &RobotsKey) -> String {
    format!("{} {}", key.token, key.origin)
}

impl RobotsStore for DiskStore {
    fn load<'a>(&'a self, key: &'a RobotsKey) -> StoreFuture<'a, Option<StoredRobots>> {
        let name = name(key);
        Box::pin(self.work("look up a robots.txt", move |inner| {
            let read = inner.database.begin_read()?;
            let known = match read.open_table(KNOWN) {
                Ok(table) => table.get(&*name)?,
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let Some(known) = known else {
                return Ok(None);
            };
            let known = unseal(known.value()).ok_or("a record is damaged")?;
            let bytes = match read.open_table(BYTES) {
                Ok(table) => match table.get(&*name)? {
                    Some(bytes) => {
                        let bytes = unseal(bytes.value()).ok_or("a file is damaged")?;
                        Some(bytes::Bytes::copy_from_slice(bytes))
                    }
                    None => None,
                },
                Err(TableError::TableDoesNotExist(_)) => None,
                Err(error) => return Err(error.into()),
            };
            Ok(Some(StoredRobots::decode(known, bytes)))
        }))
    }

    fn save<'a>(&'a self, key: &'a RobotsKey, record: StoredRobots) -> StoreFuture<'a, ()> {
        let name = name(key);
        Box::pin(self.work("keep a robots.txt", move |inner| {
            let write = inner.database.begin_write()?;
            {
                let mut known = write.open_table(KNOWN)?;
                let mut bytes = write.open_table(BYTES)?;
                match record.copy.as_ref().map(|copy| &copy.outcome) {
                    Some(StoredOutcome::Rules(Some(file))) => {
                        bytes.insert(&*name, &*seal(file))?;
                    }
                    Some(StoredOutcome::Rules(None)) => {}
                    _ => {
                        bytes.remove(&*name)?;
                    }
                }
                known.insert(&*name, &*seal(&record.encode()))?;
            }
            write.commit()?;
            Ok(())
        }))
    }
}
