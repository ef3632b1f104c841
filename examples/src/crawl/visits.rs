//! When pages were visited last, from run to run: what sitemaps and feeds are compared with.
//!
//! Without a folder it is remembered as long as the program runs. In a folder (`--cache`) it is one line of JSON for
//! each visit in `visits.jsonl`, written when the visit is over, so that a killed crawl has lost nothing. What cannot
//! be read there was not visited: the page is asked for again, under conditions.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use etiquette_discovery::sitemap::LastMod;
use http::Uri;
use serde::{Deserialize, Serialize};

/// Visits that are remembered at most. A page beyond that is asked for under conditions in each run.
const MOST: usize = 500_000;

/// What a list says about a page since our last visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It is new to us, or changed since the last visit, or may have: `certain` says that it did.
    Changed {
        at: Option<SystemTime>,
        certain: bool,
    },
    /// The list does not say.
    Unknown,
    /// It did not change.
    Unchanged,
}

/// The visits so far.
#[derive(Debug, Default)]
pub(super) struct Visits {
    at: HashMap<String, SystemTime>,
    sitemaps: BTreeMap<String, Vec<String>>,
    file: Option<File>,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Line {
    Visit {
        url: String,
        /// Whole seconds since 1970, as dates of HTTP and sitemaps are.
        at: u64,
    },
    Robots {
        robots: String,
        sitemaps: Vec<String>,
    },
}

impl Visits {
    /// What is known from earlier runs in `folder`.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub(super) fn open(folder: Option<&Path>) -> io::Result<Self> {
        let Some(folder) = folder else {
            return Ok(Self::default());
        };
        fs::create_dir_all(folder)?;
        let path = folder.join("visits.jsonl");
        let known = match fs::read(&path) {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut visits = Self::default();
        for line in known.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Visit { url, at }) => {
                    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at));
                    visits.at.extend(at.map(|at| (url, at)));
                }
                Ok(Line::Robots { robots, sitemaps }) => {
                    visits.sitemaps.insert(robots, sitemaps);
                }
                Err(_) => {}
            }
        }
        // One line for each URL again, however many runs there were.
        let fresh = folder.join("visits.jsonl.new");
        let mut bytes = Vec::new();
        for (url, at) in &visits.at {
            push(&mut bytes, &visit(url, *at))?;
        }
        for (robots, sitemaps) in &visits.sitemaps {
            push(&mut bytes, &named(robots, sitemaps))?;
        }
        fs::write(&fresh, bytes)?;
        fs::rename(&fresh, &path)?;
        visits.file = Some(OpenOptions::new().append(true).open(&path)?);
        Ok(visits)
    }

    /// What the list that names `url`, with this date or none, says about it.
    pub(super) fn change(&self, url: &str, date: Option<LastMod>, now: SystemTime) -> Change {
        let at = date.map(|date| date.latest());
        match (self.at.get(url), date) {
            (None, Some(_)) => Change::Changed { at, certain: false },
            (_, None) => Change::Unknown,
            (Some(visit), Some(date)) if date.is_after(*visit) => Change::Changed {
                at,
                // A date to come is a mistake, and would be after each visit.
                certain: date.earliest() > *visit && date.earliest() <= now,
            },
            (Some(_), Some(_)) => Change::Unchanged,
        }
    }

    /// What a feed says about an entry: whether it is new. That it is old says nothing, since a feed may date the
    /// first publication only.
    pub(super) fn change_of_feed(
        &self,
        url: &str,
        date: Option<LastMod>,
        now: SystemTime,
    ) -> Change {
        match self.change(url, date, now) {
            Change::Unchanged => Change::Unknown,
            Change::Unknown if !self.at.contains_key(url) => Change::Changed {
                at: None,
                certain: false,
            },
            change => change,
        }
    }

    /// `url` was answered with what it holds at `at`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn visited(&mut self, url: &str, at: SystemTime) -> io::Result<()> {
        if self.at.len() >= MOST && !self.at.contains_key(url) {
            return Ok(());
        }
        let line = visit(url, at);
        self.at.insert(url.to_owned(), whole(at));
        self.write(&line)
    }

    /// The sitemaps that the robots.txt of `origin` named when it was seen last.
    pub(super) fn sitemaps(&self, origin: &str) -> Vec<Uri> {
        let known = self.sitemaps.get(origin).into_iter().flatten();
        known.filter_map(|url| url.parse().ok()).collect()
    }

    /// The robots.txt of `origin` names these sitemaps.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn named(&mut self, origin: &str, sitemaps: &[Uri]) -> io::Result<()> {
        let sitemaps: Vec<String> = sitemaps.iter().map(ToString::to_string).collect();
        if self.sitemaps.get(origin) == Some(&sitemaps) {
            return Ok(());
        }
        let line = named(origin, &sitemaps);
        self.sitemaps.insert(origin.to_owned(), sitemaps);
        self.write(&line)
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        push(&mut bytes, line)?;
        file.write_all(&bytes)
    }
}

fn seconds(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// The second in which `at` lies: its beginning, so that a change in it counts.
fn whole(at: SystemTime) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds(at))
}

fn visit(url: &str, at: SystemTime) -> Line {
    Line::Visit {
        url: url.to_owned(),
        at: seconds(at),
    }
}

fn named(robots: &str, sitemaps: &[String]) -> Line {
    Line::Robots {
        robots: robots.to_owned(),
        sitemaps: sitemaps.to_vec(),
    }
}

fn push(bytes: &mut Vec<u8>, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *bytes, line)?;
    bytes.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use etiquette_tests::folder::TempFolder;

    use super::*;

    fn at(text: &str) -> SystemTime {
        LastMod::parse(text).unwrap().earliest()
    }

    #[test]
    fn a_date_is_compared_with_the_last_visit() {
        let now = at("2026-12-01T12:00:00Z");
        let mut visits = Visits::default();
        visits.visited("u", at("2026-11-20T12:00:00Z")).unwrap();
        let change = |url, date: &str| visits.change(url, LastMod::parse(date), now);
        let certain = |url, date| match change(url, date) {
            Change::Changed { certain, .. } => Some(certain),
            _ => None,
        };
        assert_eq!(change("u", "2026-11-20T11:59:59Z"), Change::Unchanged);
        assert_eq!(change("u", "2026-11-18"), Change::Unchanged);
        assert_eq!(change("u", "never"), Change::Unknown);
        assert_eq!(certain("u", "2026-11-20T12:00:01Z"), Some(true));
        // The second of the visit, its day and its year: perhaps.
        assert_eq!(certain("u", "2026-11-20T12:00:00Z"), Some(false));
        assert_eq!(certain("u", "2026-11-20"), Some(false));
        assert_eq!(certain("u", "2026"), Some(false));
        assert_eq!(certain("u", "2027-01-01T00:00:00Z"), Some(false));
        assert_eq!(certain("new", "2020-01-01"), Some(false));
        assert_eq!(change("new", ""), Change::Unknown);
    }

    #[test]
    fn a_feed_tells_what_is_new_and_nothing_else() {
        let now = at("2026-12-01T12:00:00Z");
        let mut visits = Visits::default();
        visits.visited("u", at("2026-11-20T12:00:00Z")).unwrap();
        let change = |url, date: &str| visits.change_of_feed(url, LastMod::parse(date), now);
        assert_eq!(change("u", "2026-11-01"), Change::Unknown);
        assert_eq!(change("u", ""), Change::Unknown);
        assert!(matches!(change("u", "2026-11-25"), Change::Changed { .. }));
        assert!(matches!(
            change("new", ""),
            Change::Changed { at: None, .. }
        ));
    }

    #[test]
    fn a_folder_remembers() {
        let folder = TempFolder::new();
        let map = [Uri::from_static("http://a.test/map.xml")];
        let visit = at("2026-11-20T12:00:00Z");
        let mut visits = Visits::open(Some(folder.path())).unwrap();
        visits.visited("u", at("2026-11-01T12:00:00Z")).unwrap();
        visits.visited("u", visit).unwrap();
        visits.named("http://a.test", &map).unwrap();
        drop(visits);
        // As a killed process leaves it.
        let path = folder.join("visits.jsonl");
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "{{\"url\":\"w\",\"at\":{}}}", u64::MAX).unwrap();
        file.write_all(b"{\"url\":\"v\",\"a").unwrap();
        drop(file);
        let visits = Visits::open(Some(folder.path())).unwrap();
        assert_eq!(visits.at, HashMap::from([("u".to_owned(), visit)]));
        assert_eq!(visits.sitemaps("http://a.test"), map);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }
}
