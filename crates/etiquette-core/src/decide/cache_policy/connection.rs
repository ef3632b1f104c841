//! Fields that end with the connection.

use http::header::{
    CONNECTION, HeaderMap, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

use super::directives::members;

/// The fields that concern one connection only (RFC 9110, 7.6.1; RFC 9111, 3.1), which Connection adds others to.
static PER_CONNECTION: [HeaderName; 10] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authentication-info"),
];

/// Removes the fields that concern one connection only, those that Connection names included.
pub fn remove_connection_fields(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|line| members(line.as_bytes()))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    for name in named.iter().chain(&PER_CONNECTION) {
        headers.remove(name);
    }
}
