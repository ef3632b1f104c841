//! Checksums of bodies and of values in the database. The database itself checks its own after a crash only, and a byte
//! that has changed on the disk must not become a response.

/// The value behind its checksum.
pub(super) fn seal(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + value.len());
    out.extend(checksum(value).to_be_bytes());
    out.extend_from_slice(value);
    out
}

/// The value, if it is the one that was sealed.
pub(super) fn unseal(bytes: &[u8]) -> Option<&[u8]> {
    let (sum, value) = bytes.split_first_chunk::<8>()?;
    (u64::from_be_bytes(*sum) == checksum(value)).then_some(value)
}

/// Tells damage, not malice: eight bytes at a time, well mixed.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = K ^ bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        sum = (sum.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(K);
    }
    for &byte in rest {
        sum = (sum.rotate_left(23) ^ u64::from(byte)).wrapping_mul(K);
    }
    (sum ^ (sum >> 32)).wrapping_mul(K)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_counts() {
        let body: Vec<u8> = (0..100).collect();
        let sum = checksum(&body);
        for at in 0..body.len() {
            let mut damaged = body.clone();
            damaged[at] ^= 1;
            assert_ne!(checksum(&damaged), sum, "{at}");
            assert_ne!(checksum(&body[..at]), sum, "{at}");
        }
    }

    #[test]
    fn what_has_changed_is_not_opened() {
        let value = b"a value of some length";
        let whole = seal(value);
        assert_eq!(unseal(&whole), Some(&value[..]));
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert_eq!(unseal(&damaged), None, "{at}");
            assert_eq!(unseal(&whole[..at]), None, "{at}");
        }
    }
}
