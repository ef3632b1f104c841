//! llms.txt: nothing panics.
#![no_main]

use etiquette_discovery::llms_txt::LlmsTxt;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let uri = "https://www.example.com/llms.txt".parse().expect("a URI");
    let _ = LlmsTxt::parse(&uri, file);
    let _ = LlmsTxt::parse(&uri, &[b"# T\n", file].concat());
});
