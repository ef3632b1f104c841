//! The syntax of header field values: dates (RFC 9110, 5.6.7), structured fields (RFC 9651), base64 (RFC 4648).

pub(crate) mod base64;
pub mod date;
mod joined;
pub(crate) mod structured;

pub(crate) use joined::joined;
