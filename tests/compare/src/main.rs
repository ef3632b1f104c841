//! Programs that measure this workspace against named peers in one run.

use std::process::ExitCode;

mod budget;
mod cache;
mod heap;
mod redis;
mod robots;
mod scale;
mod sitemap;
mod timing;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["cache"] => cache::run(false),
        ["cache", "--json"] => cache::run(true),
        ["cache", "gateway", peer, listen, upstream] => cache::gateway(peer, listen, upstream),
        ["robots"] => robots::run(false),
        ["robots", "--json"] => robots::run(true),
        ["robots", "one", peer, case, what] => robots::one(peer, case, what),
        ["budget"] => budget::run(false),
        ["budget", "--json"] => budget::run(true),
        ["redis"] => redis::run(false),
        ["redis", "--json"] => redis::run(true),
        ["sitemap"] => sitemap::run(false),
        ["sitemap", "--json"] => sitemap::run(true),
        ["scale"] => scale::run(1_000_000),
        ["scale", hosts] if hosts.parse::<u32>().is_ok() => {
            scale::run(hosts.parse().expect("a number"))
        }
        _ => {
            eprintln!(
                "usage: compare robots|cache|budget|redis|sitemap [--json], compare scale [HOSTS]"
            );
            ExitCode::from(2)
        }
    }
}
