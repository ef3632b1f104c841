//! Link fields and link sets: nothing panics, nothing is unbounded.
#![no_main]

use etiquette_discovery::{from_link_header, link_header, linkset};
use http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let uri = "https://www.example.com/dir/page".parse().expect("a URI");
    let links = link_header::parse(bytes.split(|byte| *byte == b'\n'));
    assert!(links.len() <= link_header::MAX_LINKS);
    if let Ok(value) = HeaderValue::from_bytes(bytes) {
        let mut headers = HeaderMap::new();
        headers.insert(header::LINK, value);
        let _ = from_link_header(&uri, &headers);
    }
    let _ = linkset::parse(&uri, "application/linkset", bytes);
    let _ = linkset::parse(&uri, "application/linkset+json", bytes);
});
