//! Base64 (RFC 4648): the standard alphabet as in structured fields, and the one for URLs as in keys. Small enough to
//! go without a dependency.

/// Decodes the standard alphabet. Missing padding and stray last bits pass, as RFC 9651, 4.2.7 recommends.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let unpadded = match text {
        [rest @ .., b'=', b'='] | [rest @ .., b'='] => rest,
        _ => text,
    };
    if unpadded.len() % 4 == 1 {
        return None;
    }
    let mut decoded = Vec::with_capacity(unpadded.len() * 3 / 4);
    for group in unpadded.chunks(4) {
        let mut bits = 0_u32;
        for &byte in group {
            bits = bits << 6 | u32::from(sextet(byte)?);
        }
        bits <<= 6 * (4 - group.len());
        let [_, bytes @ ..] = bits.to_be_bytes();
        decoded.extend_from_slice(&bytes[..group.len() * 6 / 8]);
    }
    Some(decoded)
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Encodes with the standard alphabet and padding.
#[cfg(any(feature = "signatures", test))]
pub(crate) fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        for at in 0..4 {
            if at <= group.len() {
                let sextet = bits >> (18 - 6 * at) & 0x3f;
                encoded.push(ALPHABET[sextet as usize].into());
            } else {
                encoded.push('=');
            }
        }
    }
    encoded
}

/// Decodes the alphabet for URLs.
#[cfg(any(feature = "signatures", test))]
pub(crate) fn decode_url(text: &str) -> Option<Vec<u8>> {
    if text.contains(['+', '/', '=']) {
        return None;
    }
    decode(text.replace('-', "+").replace('_', "/").as_bytes())
}

/// Encodes with the alphabet for URLs, without padding.
#[cfg(any(feature = "signatures", test))]
pub(crate) fn encode_url(bytes: &[u8]) -> String {
    let encoded = encode(bytes).replace('+', "-").replace('/', "_");
    encoded.trim_end_matches('=').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYg==", b"foob"),
            ("+/+/", &[0xfb, 0xff, 0xbf]),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes), "{text}");
            assert_eq!(encode(bytes), text);
            assert_eq!(decode_url(&encode_url(bytes)).as_deref(), Some(bytes));
        }
        assert_eq!(encode_url(&[0xfb, 0xff, 0xbf]), "-_-_");
        assert_eq!(decode(b"Zg").as_deref(), Some(&b"f"[..]));
        for bad in ["A", "Zg=a", "Z-"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(decode_url("+A"), None);
    }
}
