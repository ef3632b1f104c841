//! Programs that measure this workspace against named peers in one run.

use std::process::ExitCode;

mod cache;
mod heap;
mod robots;
mod timing;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["cache"] => cache::run(false),
        ["cache", "--json"] => cache::run(true),
        ["cache", "gateway", listen, upstream] => cache::gateway(listen, upstream),
        ["robots"] => robots::run(false),
        ["robots", "--json"] => robots::run(true),
        ["robots", "one", peer, case, what] => robots::one(peer, case, what),
        _ => {
            eprintln!("usage: compare robots|cache [--json]");
            ExitCode::from(2)
        }
    }
}
