//! Pages and references: nothing panics, and what was resolved stays as it is when it is resolved again.
#![no_main]

use etiquette_discovery::html::HtmlScanner;
use etiquette_discovery::reference::resolve;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let uri = "https://www.example.com/dir/page?q".parse().expect("a URI");
    let page = HtmlScanner::new(&uri).scan(body);
    let links = page.links().iter().map(|link| &link.uri);
    for found in links.chain(page.anchors().iter().map(|anchor| &anchor.uri)) {
        assert!(matches!(found.scheme_str(), Some("http" | "https")), "{found}");
        assert_eq!(resolve(&uri, &found.to_string()).as_ref(), Ok(found));
    }
});
