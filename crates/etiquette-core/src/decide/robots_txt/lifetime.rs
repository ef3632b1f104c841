//! How long a copy of robots.txt lives (RFC 9309, 2.4; RFC 9111, 4.2).

use std::time::Duration;

use http::{HeaderMap, header};

use super::policy::RobotsPolicy;

/// The lifetime of a copy: min(max-age − Age, the policy's longest), never under the floor.
pub(super) fn lifetime(headers: &HeaderMap, policy: &RobotsPolicy) -> Duration {
    let age = headers
        .get(header::AGE)
        .and_then(|value| seconds(value.as_bytes()))
        .unwrap_or(0);
    let mut life = policy.get_max_life();
    for directive in headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .flat_map(|line| line.as_bytes().split(|&b| b == b','))
    {
        let (name, value) = match directive.iter().position(|&b| b == b'=') {
            Some(at) => (&directive[..at], &directive[at + 1..]),
            None => (directive, &[][..]),
        };
        let name = name.trim_ascii();
        if name.eq_ignore_ascii_case(b"max-age") {
            let value = value.trim_ascii();
            let value = value
                .strip_prefix(b"\"")
                .and_then(|v| v.strip_suffix(b"\""))
                .unwrap_or(value);
            // A max-age that cannot be read is stale already (RFC 9111, 4.2.1).
            let left = seconds(value).unwrap_or(0).saturating_sub(age);
            life = life.min(Duration::from_secs(left));
        } else if name.eq_ignore_ascii_case(b"no-store") || name.eq_ignore_ascii_case(b"no-cache") {
            life = Duration::ZERO;
        }
    }
    life.max(RobotsPolicy::FLOOR)
}

/// 1*DIGIT, saturating.
fn seconds(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0u64, |sum, &digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    }))
}
