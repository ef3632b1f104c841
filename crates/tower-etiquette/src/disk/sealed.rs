//! Values with a checksum: the database itself looks at its checksums after a crash only, and a byte that has changed
//! on the disk must not become an answer.

use super::files::checksum;

/// The value behind its checksum.
pub(super) fn seal(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + value.len());
    out.extend(checksum(value).to_be_bytes());
    out.extend_from_slice(value);
    out
}

/// The value, if it is the one that was sealed.
pub(super) fn open(bytes: &[u8]) -> Option<&[u8]> {
    let (sum, value) = bytes.split_first_chunk::<8>()?;
    (u64::from_be_bytes(*sum) == checksum(value)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_not_opened() {
        let value = b"a value of some length";
        let whole = seal(value);
        assert_eq!(open(&whole), Some(&value[..]));
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x10;
            assert_eq!(open(&damaged), None, "{place}");
            assert_eq!(open(&whole[..place]), None, "{place}");
        }
    }
}
