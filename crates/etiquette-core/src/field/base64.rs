//! Base64 (RFC 4648): the standard alphabet as in structured fields, and the one for URLs as in keys.
//!
//! Reading is as lenient as RFC 9651, 4.2.7 recommends: missing padding and stray last bits pass.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const STANDARD: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Without padding, written or read.
#[cfg(any(feature = "signatures", test))]
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Decodes the standard alphabet.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Encodes with the standard alphabet and padding.
#[cfg(any(feature = "signatures", test))]
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes the alphabet for URLs.
#[cfg(any(feature = "signatures", test))]
pub(crate) fn decode_url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE.decode(text).ok()
}

/// Encodes with the alphabet for URLs.
#[cfg(any(feature = "signatures", test))]
pub(crate) fn encode_url(bytes: &[u8]) -> String {
    URL_SAFE.encode(bytes)
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
        assert_eq!(decode(b"Zh==").as_deref(), Some(&b"f"[..]));
        for bad in ["A", "Zg=a", "Z-"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
        for bad in ["+A", "Zg=="] {
            assert_eq!(decode_url(bad), None, "{bad}");
        }
    }
}
