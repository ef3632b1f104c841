//! robots.txt: parse, match and kept heap against texting_robots, robotxt and robotstxt.
//!
//! Each parser reads for one token, as a crawler does. Hostile files are also measured against a plain one of the same
//! size, which is what nobody should be able to make slower than twice. Peers meet those in a process of their own that
//! is given up on after a while.

mod cases;
mod peers;

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cases::Case;
use peers::{OURS, PEERS, What};
use serde_json::json;

/// How long a peer may take over one hostile measurement.
const PATIENCE: Duration = Duration::from_secs(10);

struct Row<'a> {
    case: &'a str,
    what: What,
    ours: f64,
    peer: &'a str,
    /// `None`: given up on.
    theirs: Option<f64>,
}

impl Row<'_> {
    /// How many times better ours is.
    fn ratio(&self) -> Option<f64> {
        let theirs = self.theirs?;
        Some(match self.what {
            What::Parse => self.ours / theirs,
            What::Match | What::Heap => theirs / self.ours,
        })
    }

    fn print(&self, as_json: bool) {
        if as_json {
            let round = |number: f64| (number * 1_000.0).round() / 1_000.0;
            let row = json!({
                "case": self.case,
                "what": self.what.name(),
                "ours": round(self.ours),
                "unit": self.what.unit(),
                "peer": self.peer,
                "theirs": self.theirs.map(round),
                "ratio": self.ratio().map(round),
            });
            println!("{row}");
            return;
        }
        let theirs = match self.theirs {
            Some(theirs) => format!("{theirs:.1}"),
            None => format!("over {} s", PATIENCE.as_secs()),
        };
        let ratio = self
            .ratio()
            .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}"));
        println!(
            "{:20} {:6} {:>14.1} {:7} {:16} {:>14} {:>9}",
            self.case,
            self.what.name(),
            self.ours,
            self.what.unit(),
            self.peer,
            theirs,
            ratio
        );
    }
}

pub(crate) fn run(as_json: bool) -> ExitCode {
    if !as_json {
        println!(
            "{:20} {:6} {:>14} {:7} {:16} {:>14} {:>9}",
            "case", "what", "ours", "unit", "peer", "theirs", "ratio"
        );
    }
    let cases = cases::all();
    if !cases.iter().any(|case| case.name == "real-files") {
        eprintln!("skipped: real-files, which are not there");
    }
    for case in &cases {
        for what in What::ALL {
            measure(case, what, as_json);
        }
    }
    ExitCode::SUCCESS
}

fn measure(case: &Case, what: What, as_json: bool) {
    let Some(ours) = peers::measure(OURS, case, what) else {
        return;
    };
    let row = |peer, theirs| Row {
        case: case.name,
        what,
        ours,
        peer,
        theirs,
    };
    if what == What::Heap {
        let bytes: usize = case.files.iter().map(Vec::len).sum();
        row("the file", Some(bytes as f64)).print(as_json);
    }
    if case.hostile && what != What::Heap {
        let plain = Case {
            name: "plain",
            files: vec![cases::plain_of(case.files[0].len())],
            paths: case.paths.clone(),
            hostile: false,
        };
        row("plain file", peers::measure(OURS, &plain, what)).print(as_json);
    }
    for peer in PEERS {
        if case.hostile {
            row(peer, with_patience(peer, case.name, what)).print(as_json);
        } else if let Some(theirs) = peers::measure(peer, case, what) {
            row(peer, Some(theirs)).print(as_json);
        }
    }
}

/// Measures in a process of its own; `None` if it takes too long or dies.
fn with_patience(peer: &str, case: &str, what: What) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let mut child = Command::new(program)
        .args(["robots", "one", peer, case, what.name()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if child.try_wait().ok()?.is_some() {
            let mut printed = String::new();
            child.stdout.take()?.read_to_string(&mut printed).ok()?;
            return printed.trim().parse().ok();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// One measurement, printed as a number: the child of [`with_patience`].
pub(crate) fn one(peer: &str, case: &str, what: &str) -> ExitCode {
    let cases = cases::all();
    let measured = cases
        .iter()
        .find(|known| known.name == case)
        .zip(What::of(what))
        .and_then(|(case, what)| peers::measure(peer, case, what));
    match measured {
        Some(number) => {
            println!("{number}");
            ExitCode::SUCCESS
        }
        None => ExitCode::from(2),
    }
}
