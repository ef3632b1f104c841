//! Base64 (RFC 4648), the standard alphabet as in structured fields. Small enough to go without a dependency.

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
        for &octet in group {
            bits = bits << 6 | u32::from(sextet(octet)?);
        }
        bits <<= 6 * (4 - group.len());
        let [_, octets @ ..] = bits.to_be_bytes();
        decoded.extend_from_slice(&octets[..group.len() * 6 / 8]);
    }
    Some(decoded)
}

fn sextet(octet: u8) -> Option<u8> {
    match octet {
        b'A'..=b'Z' => Some(octet - b'A'),
        b'a'..=b'z' => Some(octet - b'a' + 26),
        b'0'..=b'9' => Some(octet - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes() {
        for (text, expected) in [
            ("", Some(&b""[..])),
            ("Zg==", Some(b"f")),
            ("Zg", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("+/+/", Some(&[0xfb, 0xff, 0xbf])),
            ("A", None),
            ("Zg=a", None),
            ("Z-", None),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }
}
