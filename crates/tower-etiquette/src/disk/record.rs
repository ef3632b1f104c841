//! The records of one URL, as they stand in the database.

use etiquette_core::decide::cache_policy::StoredResponse;
use redb::TableDefinition;

use super::files::BodyId;

/// The records of each URL.
pub(super) const HEADS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("heads 2");

/// One variant as it stands in the database.
pub(super) struct Record {
    pub(super) body: BodyId,
    pub(super) head: StoredResponse,
    /// The length of the encoded head.
    pub(super) bytes: usize,
}

/// What records occupy: bodies and heads.
pub(super) fn size_of(records: &[Record]) -> u64 {
    records
        .iter()
        .map(|record| record.body.length + record.bytes as u64)
        .sum()
}

pub(super) fn encode(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        let head = record.head.encode();
        out.extend(record.body.number.to_be_bytes());
        out.extend(record.body.length.to_be_bytes());
        out.extend(record.body.checksum.to_be_bytes());
        out.extend((head.len() as u64).to_be_bytes());
        out.extend(head);
    }
    out
}

pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let mut number = || {
            let (head, rest) = bytes.split_first_chunk::<8>()?;
            bytes = rest;
            Some(u64::from_be_bytes(*head))
        };
        let body = BodyId {
            number: number()?,
            length: number()?,
            checksum: number()?,
        };
        let length = usize::try_from(number()?).ok()?;
        let (head, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        records.push(Record {
            body,
            head: StoredResponse::decode(head)?,
            bytes: length,
        });
    }
    Some(records)
}
