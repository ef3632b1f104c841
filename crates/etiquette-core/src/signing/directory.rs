//! The key directory: where a verifier finds the public keys of a client
//! (draft-ietf-webbotauth-httpsig-directory; RFC 7517).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::digest::{SHA256, digest};

use super::{PublicKey, SignatureInput, SigningKey};
use crate::field::base64;
use crate::field::structured::{Bare, Item};

/// Where the directory of an origin is.
pub const PATH: &str = "/.well-known/http-message-signatures-directory";

/// The media type of the directory.
pub const MEDIA_TYPE: &str = "application/http-message-signatures-directory+json";

/// How long the signature of a directory response is valid by default: a day, for caches in between.
pub const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// The document with these keys.
#[must_use]
pub fn document<'k>(keys: impl IntoIterator<Item = &'k PublicKey>) -> String {
    let keys: Vec<_> = keys.into_iter().map(PublicKey::to_value).collect();
    serde_json::json!({ "keys": keys }).to_string()
}

/// The Ed25519 keys of a document; others are left out. `None` where it is no directory.
#[must_use]
pub fn keys(document: &str) -> Option<Vec<PublicKey>> {
    let document: serde_json::Value = serde_json::from_str(document).ok()?;
    let keys = document["keys"].as_array()?;
    let read = keys
        .iter()
        .filter_map(|key| PublicKey::from_value(key).ok());
    Some(read.collect())
}

/// The headers of the response with `body`, signed by `key` for a request to `authority` from the wall time `now` on,
/// for `lifetime`. The signature binds the key to the authority that serves it, so that nobody can serve a copy as his
/// own.
#[must_use]
pub fn headers(
    key: &SigningKey,
    body: &str,
    authority: &str,
    now: SystemTime,
    lifetime: Duration,
) -> HeaderMap {
    let created = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let expires = created.saturating_add(lifetime.as_secs());
    const LABEL: &str = "binding";
    let hash = base64::encode(digest(&SHA256, body.as_bytes()).as_ref());
    let content_digest = format!("sha-256=:{hash}:");
    let item = |name: &str, request: bool| Item {
        bare: Bare::String(name.to_owned()),
        parameters: if request {
            vec![("req".to_owned(), Bare::Boolean(true))]
        } else {
            Vec::new()
        },
    };
    let mut input = SignatureInput::new(&[]);
    input.items = vec![item("@authority", true), item("content-digest", false)];
    let input = input
        .time("created", created)
        .time("expires", expires)
        .text("keyid", key.public().thumbprint())
        .text("tag", "http-message-signatures-directory");
    let base = input
        .base_with(|item| {
            Some(match &item.bare {
                Bare::String(name) if name == "@authority" => authority.to_owned(),
                _ => content_digest.clone(),
            })
        })
        .expect("every component has a value");
    let signature = base64::encode(&key.sign(&base));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    for (name, text) in [
        ("content-digest", content_digest),
        ("signature-input", format!("{LABEL}={}", input.to_text())),
        ("signature", format!("{LABEL}=:{signature}:")),
    ] {
        // Base64, digits and a thumbprint.
        let value = HeaderValue::from_str(&text).expect("the text is ASCII");
        headers.insert(HeaderName::from_static(name), value);
    }
    headers
}
