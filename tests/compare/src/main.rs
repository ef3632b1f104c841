//! Programs that measure this workspace against named peers in one run.

fn main() {
    eprintln!("usage: compare <robots>");
    std::process::exit(2);
}
