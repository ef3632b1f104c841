//! The parsers, behind one face.

use std::hint::black_box;

use etiquette_robots::{ProductToken, Robots, RobotsBuilder};
use robotstxt::{DefaultMatcher, RobotsParseHandler};

use super::cases::Case;
use crate::{heap, timing};

const TOKEN: &str = "ExampleBot";

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum What {
    Parse,
    Match,
    Heap,
}

impl What {
    pub(crate) const ALL: [Self; 3] = [Self::Parse, Self::Match, Self::Heap];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Match => "match",
            Self::Heap => "heap",
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Parse => "MB/s",
            Self::Match => "ns/URL",
            Self::Heap => "bytes",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|what| what.name() == name)
    }
}

pub(crate) const PEERS: [&str; 3] = ["texting_robots", "robotxt", "robotstxt"];
pub(crate) const OURS: &str = "etiquette-robots";

/// Measures one parser. `None` where it has no such thing.
pub(crate) fn measure(parser: &str, case: &Case, what: What) -> Option<f64> {
    match parser {
        OURS => {
            let token: ProductToken = TOKEN.parse().expect("a token");
            let builder: RobotsBuilder =
                Robots::builder().tokens([token.clone()]).max_bytes(1 << 26);
            Some(run(
                case,
                what,
                |file| builder.parse(file),
                |robots, paths| {
                    let group = robots.group(&token);
                    for path in paths {
                        black_box(group.check(path.as_bytes()).allowed());
                    }
                },
            ))
        }
        "texting_robots" => Some(run(
            case,
            what,
            |file| texting_robots::Robot::new(TOKEN, file).ok(),
            |robot, paths| {
                for path in paths {
                    black_box(robot.as_ref().is_some_and(|robot| robot.allowed(path)));
                }
            },
        )),
        // It reads 500 KiB and no more.
        "robotxt"
            if case
                .files
                .iter()
                .any(|file| file.len() > super::cases::LIMIT) =>
        {
            None
        }
        "robotxt" => Some(run(
            case,
            what,
            |file| robotxt::Robots::parse(file, TOKEN),
            |robots, paths| {
                for path in paths {
                    black_box(robots.is_allowed(path));
                }
            },
        )),
        // It keeps the text and reads it again for each URL.
        "robotstxt" => Some(run(
            case,
            what,
            |file| {
                let text = String::from_utf8_lossy(file).into_owned();
                if what == What::Parse {
                    robotstxt::parse_robotstxt(&text, &mut Ignore);
                }
                text
            },
            |text, paths| {
                for path in paths {
                    let url = format!("https://www.example.com{path}");
                    let mut matcher = DefaultMatcher::default();
                    black_box(matcher.one_agent_allowed_by_robots(text, TOKEN, &url));
                }
            },
        )),
        _ => None,
    }
}

fn run<R>(case: &Case, what: What, parse: impl Fn(&[u8]) -> R, ask: impl Fn(&R, &[String])) -> f64 {
    let all = || -> Vec<R> { case.files.iter().map(|file| parse(file)).collect() };
    match what {
        What::Parse => {
            let bytes: usize = case.files.iter().map(Vec::len).sum();
            let seconds = timing::seconds(|| {
                for file in &case.files {
                    black_box(parse(black_box(file)));
                }
            });
            bytes as f64 / seconds / 1e6
        }
        What::Match => {
            let parsed = all();
            let seconds = timing::seconds(|| {
                for robots in &parsed {
                    ask(black_box(robots), &case.paths);
                }
            });
            seconds * 1e9 / (case.paths.len() * parsed.len()) as f64
        }
        // The list of the files themselves is not counted.
        What::Heap => heap::held(all) - (case.files.len() * size_of::<R>()) as f64,
    }
}

struct Ignore;

impl RobotsParseHandler for Ignore {
    fn handle_robots_start(&mut self) {}
    fn handle_robots_end(&mut self) {}
    fn handle_user_agent(&mut self, _: u32, value: &str) {
        black_box(value);
    }
    fn handle_allow(&mut self, _: u32, value: &str) {
        black_box(value);
    }
    fn handle_disallow(&mut self, _: u32, value: &str) {
        black_box(value);
    }
    fn handle_sitemap(&mut self, _: u32, value: &str) {
        black_box(value);
    }
    fn handle_unknown_action(&mut self, _: u32, _: &str, value: &str) {
        black_box(value);
    }
}
