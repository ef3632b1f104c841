//! Which addresses are on the public internet.
//!
//! A URL that somebody else supplied may lead to a machine that only this one can reach: a router, a neighbour's
//! database, the metadata service of a cloud. Whoever connects asks [`is_public`] about each resolved address, after
//! DNS and for every hop, and connects to that very address.
//!
//! **Scope**: the special-purpose registries of IANA (RFC 6890), and IPv6 forms that carry an IPv4 address: mapped,
//! compatible, NAT64 (RFC 6052), 6to4 and Teredo. **Non-goals**: names. Behind another HTTP proxy it cannot hold,
//! because the proxy resolves and connects.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::Origin;

/// A host leads to an address that is not public, and the client connects to public ones only. Nothing was sent to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddressRefused {
    /// The origin that was asked for, if the request names one.
    pub origin: Option<Origin>,
    /// Where it leads: itself, or by a redirect of its robots.txt.
    pub address: IpAddr,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

impl AddressRefused {
    /// A refusal to connect to `address` for `origin`.
    #[must_use]
    pub fn new(origin: Option<Origin>, address: IpAddr, contact: Option<Arc<str>>) -> Self {
        Self {
            origin,
            address,
            contact,
        }
    }
}

impl fmt::Display for AddressRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a public address", self.address)
    }
}

impl Error for AddressRefused {}

/// Whether `address` is a unicast address of the public internet, as far as its number tells.
///
/// ```
/// use etiquette_core::decide::address::is_public;
///
/// assert!(is_public("192.0.1.1".parse().unwrap()));
/// assert!(!is_public("169.254.169.254".parse().unwrap()), "cloud metadata");
/// assert!(!is_public("::ffff:127.0.0.1".parse().unwrap()));
/// ```
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.to_bits().to_be_bytes();
    let special = match (a, b, c) {
        // This network, private use, loopback (RFC 1122, RFC 1918).
        (0 | 10 | 127, _, _) => true,
        (172, 16..=31, _) | (192, 168, _) => true,
        // Shared by carriers (RFC 6598); link-local, which has the clouds' metadata services (RFC 3927).
        (100, 64..=127, _) | (169, 254, _) => true,
        // Protocol assignments, documentation, 6to4 relays, benchmarks (RFC 6890, RFC 5737, RFC 7526, RFC 2544).
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) => true,
        (198, 51, 100) | (203, 0, 113) => true,
        // Multicast, reserved, broadcast.
        (224.., _, _) => true,
        // A platform's virtual address for its own agents and metadata, though publicly routed space.
        (168, 63, 129) => d == 16,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let s = address.segments();
    if let Some(inner) = carried_v4(s) {
        return is_public_v4(inner);
    }
    let special = match s {
        // Documentation (RFC 3849, RFC 9637).
        [0x2001, 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => true,
        // Protocol assignments: benchmarks, ORCHID and others (RFC 2928).
        [0x2001, 0x0000..=0x01ff, ..] => true,
        // Global unicast is 2000::/3. The rest has loopback, unspecified, unique local, link-local, site-local,
        // multicast, discard-only, segment routing and what is not assigned.
        [first, ..] => first & 0xe000 != 0x2000,
    };
    !special
}

/// The IPv4 address that packets for an IPv6 address end up at.
fn carried_v4(s: [u16; 8]) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match s {
        // Mapped, and the obsolete compatible and translated forms. `::` and `::1` come out as 0.0.0.0/8.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Some(v4(high, low))
        }
        // NAT64: the well-known prefix (RFC 6052). The local-use prefix (RFC 8215) is outside of 2000::/3 and refused.
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => Some(v4(high, low)),
        // Teredo (RFC 4380): the client's address, inverted.
        [0x2001, 0, _, _, _, _, high, low] => Some(v4(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form() {
        for (address, public) in [
            ("192.0.1.1", true),
            ("8.8.8.8", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("100.63.255.255", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("168.63.129.16", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.192", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.51.100.1", false),
            ("203.0.113.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700::1111", true),
            ("2a00:1450::1", true),
            ("::", false),
            ("::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("ff02::1", false),
            ("100::1", false),
            ("2001:db8::1", false),
            ("3fff::1", false),
            ("2001:2::1", false),
            ("2001:20::1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("::ffff:0:127.0.0.1", false),
            ("::127.0.0.1", false),
            ("64:ff9b::169.254.169.254", false),
            ("64:ff9b::8.8.8.8", true),
            ("64:ff9b:1::8.8.8.8", false),
            ("2002:7f00:1::", false),
            ("2002:808:808::", true),
            ("2001:0:1:2:3:4:80ff:fffe", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }
}
