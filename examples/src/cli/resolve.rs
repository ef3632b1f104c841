//! Values of options: where a host leads, and spans of time.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

/// Where a host name and port lead, whatever DNS says: `HOST:PORT:ADDR`, as with curl.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolve {
    /// The host name in URLs, in lower case.
    pub host: String,
    /// The port in URLs.
    pub port: u16,
    /// Where to connect.
    pub addr: IpAddr,
}

impl FromStr for Resolve {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // An address may contain colons, a host name may not.
        let mut parts = text.splitn(3, ':');
        let (Some(host), Some(port), Some(addr)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("not of the form HOST:PORT:ADDR");
        };
        if host.is_empty() {
            return Err("the host is empty");
        }
        let addr = addr.trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port: port.parse().map_err(|_| "the port is not a number")?,
            addr: addr
                .parse()
                .map_err(|_| "the address is not an IP address")?,
        })
    }
}

/// A span of time in seconds, with a fraction if need be.
pub(crate) fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "not a span of time")
}
