//! Stored responses: our gateway against nginx's proxy_cache and http-cache-tower, interleaved in one run.
//!
//! nginx and wrk are taken from PATH; what is not there is skipped with a line. Each peer has two workers. Each round
//! asks all peers in turn; the medians of the rounds count, and of the ratios within a round, so that what else the
//! machine does weighs on both.

use std::process::{Command, ExitCode};
use std::time::Duration;

use serde_json::{Value, json};

mod loopback;
mod peers;

use loopback::{Origin, get};
pub(crate) use peers::gateway;
use peers::{OURS, Peer, on_path};

const ROUNDS: usize = 5;
const SECONDS: u32 = 4;
const LARGE: usize = 100 << 20;

pub(crate) fn run(as_json: bool) -> ExitCode {
    let origin = match Origin::start() {
        Ok(origin) => origin,
        Err(error) => return failed("the origin", &error),
    };
    let mut peers = Vec::new();
    for name in [OURS, "http-cache-tower"] {
        match peers::tower(name, origin.address) {
            Ok(peer) => peers.push(peer),
            Err(error) => return failed(name, &error),
        }
    }
    match peers::nginx(origin.address) {
        Ok(Some(peer)) => peers.push(peer),
        Ok(None) => eprintln!("skipped: nginx is not on PATH"),
        Err(error) => eprintln!("skipped: nginx does not start: {error}"),
    }
    eprintln!("load at the start: {}", load());
    let mut rows = Vec::new();
    if on_path("wrk").is_some() {
        for (case, size) in [("hit-2k", 2 << 10), ("hit-1m", 1 << 20)] {
            rows.extend(hits(case, &peers, size));
        }
    } else {
        eprintln!("skipped: wrk is not on PATH, so hits are not measured");
    }
    for peer in &peers {
        let asked = collapse(peer, &origin);
        rows.push(json!({"case": "collapse-100", "peer": peer.name, "origin_requests": asked}));
    }
    for peer in &peers {
        match large(peer) {
            Ok((first, grown)) => rows.push(json!({
                "case": "miss-100m",
                "peer": peer.name,
                "first_byte_ms": first.as_secs_f64() * 1e3,
                "memory_growth_mb": grown,
            })),
            Err(error) => return failed(peer.name, &error),
        }
    }
    eprintln!("load at the end: {}", load());
    for row in &rows {
        if as_json {
            println!("{row}");
        } else {
            let values = row.as_object().into_iter().flatten();
            let cells: Vec<String> = values
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            println!("{}", cells.join("  "));
        }
    }
    ExitCode::SUCCESS
}

fn failed(what: &str, error: &std::io::Error) -> ExitCode {
    eprintln!("{what}: {error}");
    ExitCode::FAILURE
}

/// How many processes wanted to run, over the last 1, 5 and 15 minutes.
fn load() -> String {
    std::fs::read_to_string("/proc/loadavg")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Requests a second that each peer answers from its store, and ours over theirs.
fn hits(case: &str, peers: &[Peer], size: usize) -> Vec<Value> {
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); peers.len()];
    for peer in peers {
        let _ = get(peer.address, &format!("/{size}?warm"));
    }
    for round in 0..ROUNDS {
        // There and back again: a load that grows or falls weighs on all.
        let mut order: Vec<usize> = (0..peers.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for place in order {
            let url = format!("http://{}/{size}?warm", peers[place].address);
            let done = Command::new("wrk")
                .args(["-t1", "-c16", &format!("-d{SECONDS}s"), &url])
                .output();
            let text = done.map(|done| String::from_utf8_lossy(&done.stdout).into_owned());
            let rate = text
                .unwrap_or_default()
                .lines()
                .find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
            rates[place].push(rate.unwrap_or(0.0));
        }
    }
    let ours = rates[0].clone();
    let rows = peers.iter().zip(&rates).map(|(peer, theirs)| {
        let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
        json!({
            "case": case,
            "peer": peer.name,
            "requests_per_second": median(theirs.clone()),
            "ours_over_theirs": median(ratios.collect()),
        })
    });
    rows.collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How often the origin is asked when a hundred callers miss at once.
fn collapse(peer: &Peer, origin: &Origin) -> usize {
    let before = origin.asked();
    let address = peer.address;
    let path = format!("/2048?slow={}", peer.name);
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || get(address, &path).map(|(_, bytes)| bytes))
        })
        .collect();
    for caller in callers {
        match caller.join() {
            Ok(Ok(2_048)) => {}
            other => eprintln!("{}: a caller got {other:?}", peer.name),
        }
    }
    origin.asked() - before
}

/// Time to the first byte of a large body that is not stored yet, and how much memory it took at its peak, in MB.
fn large(peer: &Peer) -> std::io::Result<(Duration, f64)> {
    let before = peer.memory_now();
    let (first, bytes) = get(peer.address, &format!("/{LARGE}?large"))?;
    if bytes != LARGE {
        return Err(std::io::Error::other(format!("{bytes} bytes of {LARGE}")));
    }
    let grown = peer.peak_memory().saturating_sub(before);
    Ok((first, grown as f64 / 1024.0))
}
