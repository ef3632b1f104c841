use std::error::Error;
use std::fmt;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde_json::Value;

use crate::field::base64;

/// The thumbprint of the Ed25519 key that RFC 9421, B.1.4 publishes.
const PUBLISHED: &str = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";

/// An Ed25519 key that signs.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

/// The public half of a key.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    bytes: [u8; 32],
    thumbprint: String,
}

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidKey {
    /// Not a JSON object.
    NotJson,
    /// Not a key of `"kty":"OKP"` and `"crv":"Ed25519"`.
    NotEd25519,
    /// A member is missing or is not 32 bytes in base64url.
    Member,
    /// The public half does not belong to the private one.
    Mismatch,
    /// The key of RFC 9421, which everybody has.
    Published,
    /// The system gave no randomness.
    NoRandomness,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotJson => "the key is no JSON object",
            Self::NotEd25519 => "the key is not an Ed25519 key",
            Self::Member => "a member of the key is missing or is not 32 bytes in base64url",
            Self::Mismatch => "the public half of the key does not belong to the private one",
            Self::Published => "the key is the one that RFC 9421 publishes for tests",
            Self::NoRandomness => "the system gave no randomness for a key",
        })
    }
}

impl Error for InvalidKey {}

impl SigningKey {
    /// A new key, and the JWK (RFC 7517) to keep it by. The text is the secret: write it where only the client reads.
    ///
    /// # Errors
    /// [`InvalidKey::NoRandomness`].
    pub fn generate() -> Result<(Self, String), InvalidKey> {
        let mut seed = [0; 32];
        SystemRandom::new()
            .fill(&mut seed)
            .map_err(|_| InvalidKey::NoRandomness)?;
        let key = Self::from_seed(&seed)?;
        let jwk = serde_json::json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "kid": key.public.thumbprint,
            "x": base64::encode_url(&key.public.bytes),
            "d": base64::encode_url(&seed),
            "use": "sig",
        });
        Ok((key, jwk.to_string()))
    }

    /// Reads a JWK with its private member `d` (RFC 8037).
    ///
    /// # Errors
    /// [`InvalidKey`]; it says nothing about the bytes of the key.
    pub fn from_jwk(jwk: &str) -> Result<Self, InvalidKey> {
        let jwk: Value = serde_json::from_str(jwk).map_err(|_| InvalidKey::NotJson)?;
        let public = PublicKey::from_value(&jwk)?;
        let key = Self::from_seed(&member(&jwk, "d")?)?;
        if key.public != public {
            return Err(InvalidKey::Mismatch);
        }
        if key.public.thumbprint == PUBLISHED {
            return Err(InvalidKey::Published);
        }
        Ok(key)
    }

    /// The key that RFC 9421, B.1.4 publishes, for tests against published signatures.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn published_for_tests() -> Self {
        let seed = base64::decode_url("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU")
            .and_then(|seed| <[u8; 32]>::try_from(seed).ok())
            .expect("the RFC's key is 32 bytes");
        Self::from_seed(&seed).expect("any 32 bytes are a seed")
    }

    fn from_seed(seed: &[u8; 32]) -> Result<Self, InvalidKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| InvalidKey::Member)?;
        let bytes = pair.public_key().as_ref().try_into();
        let public = PublicKey::new(bytes.map_err(|_| InvalidKey::Member)?);
        Ok(Self { pair, public })
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The signature over `base`.
    #[must_use]
    pub fn sign(&self, base: &str) -> Vec<u8> {
        self.pair.sign(base.as_bytes()).as_ref().to_vec()
    }
}

impl PublicKey {
    fn new(bytes: [u8; 32]) -> Self {
        // RFC 7638: the required members in this order and without blanks.
        let canonical = format!(
            r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#,
            base64::encode_url(&bytes)
        );
        let hash = digest(&SHA256, canonical.as_bytes());
        Self {
            bytes,
            thumbprint: base64::encode_url(hash.as_ref()),
        }
    }

    /// Reads a JWK.
    ///
    /// # Errors
    /// [`InvalidKey`] where it is no Ed25519 key.
    pub fn from_jwk(jwk: &str) -> Result<Self, InvalidKey> {
        let jwk = serde_json::from_str(jwk).map_err(|_| InvalidKey::NotJson)?;
        Self::from_value(&jwk)
    }

    pub(super) fn from_value(jwk: &Value) -> Result<Self, InvalidKey> {
        if !jwk.is_object() {
            return Err(InvalidKey::NotJson);
        }
        if jwk["kty"] != "OKP" || jwk["crv"] != "Ed25519" {
            return Err(InvalidKey::NotEd25519);
        }
        Ok(Self::new(member(jwk, "x")?))
    }

    /// The JWK without anything private.
    pub(super) fn to_value(&self) -> Value {
        serde_json::json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "kid": self.thumbprint,
            "x": base64::encode_url(&self.bytes),
            "use": "sig",
        })
    }

    /// The thumbprint of the key (RFC 7638), which is its `keyid`.
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Whether `signature` is one of this key over `base`.
    #[must_use]
    pub fn verifies(&self, base: &str, signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.bytes)
            .verify(base.as_bytes(), signature)
            .is_ok()
    }
}

fn member(jwk: &Value, name: &str) -> Result<[u8; 32], InvalidKey> {
    jwk[name]
        .as_str()
        .and_then(base64::decode_url)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(InvalidKey::Member)
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey")
            .field(&self.public.thumbprint)
            .finish()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicKey").field(&self.thumbprint).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_jwk_and_shows_nothing_private() {
        let (key, jwk) = SigningKey::generate().unwrap();
        let read = SigningKey::from_jwk(&jwk).unwrap();
        assert_eq!(read.public(), key.public());
        assert!(key.public().verifies("x", &read.sign("x")));
        assert!(!key.public().verifies("y", &read.sign("x")));
        let secret = serde_json::from_str::<Value>(&jwk).unwrap()["d"].clone();
        assert!(!format!("{key:?}").contains(secret.as_str().unwrap()));
    }

    #[test]
    fn what_is_no_key() {
        let x = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";
        let d = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU";
        let jwk = |kty: &str, x: &str, d: &str| {
            format!(r#"{{"kty":"{kty}","crv":"Ed25519","x":"{x}","d":"{d}"}}"#)
        };
        for (jwk, expected) in [
            (jwk("OKP", x, d), InvalidKey::Published),
            (jwk("RSA", x, d), InvalidKey::NotEd25519),
            (jwk("OKP", x, x), InvalidKey::Mismatch),
            (jwk("OKP", x, "AA"), InvalidKey::Member),
            ("[]".to_owned(), InvalidKey::NotJson),
            ("{".to_owned(), InvalidKey::NotJson),
        ] {
            assert_eq!(SigningKey::from_jwk(&jwk).unwrap_err(), expected, "{jwk}");
        }
    }
}
