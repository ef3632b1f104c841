//! What the user sees while the crawl works, and what is written for machines.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::frontier::Host;
use super::pace::Why;
use super::record::{From, Record};

/// Progress for people, records for programs.
pub(super) struct Report<'a> {
    out: &'a mut (dyn Write + Send),
    quiet: bool,
    lines: Option<File>,
    began: Instant,
    paces: BTreeMap<Host, Why>,
}

/// How many URLs went which way in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Answered by the site.
    pub network: usize,
    /// Answered from the copy that the site confirmed.
    pub validated: usize,
    /// Answered from a fresh copy, without a request.
    pub cache: usize,
    /// Refused on this side.
    pub refused: usize,
    /// Failed on the way.
    pub failed: usize,
    /// Not asked for, because a sitemap says that the page did not change since it was visited.
    pub unchanged: usize,
    /// Of those, answered by a copy that is still fresh: following links would not have cost a request either.
    pub unchanged_fresh: usize,
    /// Of those, pages to which a link was seen in this run, in pages that were asked for or in copies.
    pub unchanged_linked: usize,
    /// Sitemaps and feeds that were asked for and to which no link leads: following links would not have asked for
    /// them. They are among the counts above.
    pub lists: usize,
    /// Still unvisited when the run ended.
    pub left: usize,
    /// How long the run took.
    pub took: Duration,
}

impl Tally {
    pub(super) fn count(&mut self, record: &Record) {
        let counter = match (record.from, &record.refusal) {
            (_, Some(_)) => &mut self.refused,
            _ if record.unchanged => &mut self.unchanged,
            (Some(From::Network), None) => &mut self.network,
            (Some(From::Validated), None) => &mut self.validated,
            (Some(From::Cache), None) => &mut self.cache,
            (None, None) => &mut self.failed,
        };
        *counter += 1;
    }

    /// How many URLs were visited.
    #[must_use]
    pub fn urls(&self) -> usize {
        self.network + self.validated + self.cache + self.unchanged + self.refused + self.failed
    }

    /// The requests that the lists have saved against following links alone, with the same copies: a page that is
    /// listed as unchanged would have been asked for under conditions, unless its copy is fresh; the lists themselves
    /// would not have been asked for. Negative where they cost more than they saved, as in a first run.
    ///
    /// Every such page counts, also one to which no link was seen ([`unchanged_linked`](Self::unchanged_linked) is the
    /// number of the others): its link may stand in a copy that may not be used. What links alone would have missed or
    /// asked for on other ways is not guessed at.
    #[must_use]
    pub fn saved(&self) -> i64 {
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        whole(self.unchanged.saturating_sub(self.unchanged_fresh)) - whole(self.lists)
    }

    /// The summary for programs: all counts, and `saved` as [`saved`](Self::saved) defines it.
    pub(super) fn json(&self, run: usize, stopped: bool) -> Value {
        json!({
            "run": run,
            "stopped": stopped,
            "urls": self.urls(),
            "network": self.network,
            "validated": self.validated,
            "cache": self.cache,
            "unchanged": self.unchanged,
            "unchanged_fresh": self.unchanged_fresh,
            "unchanged_linked": self.unchanged_linked,
            "lists": self.lists,
            "saved": self.saved(),
            "refused": self.refused,
            "failed": self.failed,
            "left": self.left,
            "took_s": (self.took.as_secs_f64() * 1e3).round() / 1e3,
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} URLs in {:.1} s: {} from the network, {} validated, {} from the cache, {} refused, {} failed",
            self.urls(),
            self.took.as_secs_f64(),
            self.network,
            self.validated,
            self.cache,
            self.refused,
            self.failed
        )?;
        if self.unchanged > 0 {
            write!(f, ", {} unchanged and not asked for", self.unchanged)?;
        }
        if self.left > 0 {
            write!(f, "; {} known and not visited", self.left)?;
        }
        if self.unchanged > 0 {
            let saved = self.saved();
            write!(
                f,
                "; {saved} request{} saved against following links alone: {} stale copies were not asked about, \
                 less {} for sitemaps and feeds",
                if saved == 1 { "" } else { "s" },
                self.unchanged.saturating_sub(self.unchanged_fresh),
                self.lists
            )?;
        }
        Ok(())
    }
}

impl<'a> Report<'a> {
    /// # Errors
    /// When the file at `output` cannot be made.
    pub(super) fn new(
        out: &'a mut (dyn Write + Send),
        quiet: bool,
        output: Option<&Path>,
    ) -> io::Result<Self> {
        Ok(Self {
            out,
            quiet,
            lines: output.map(File::create).transpose()?,
            began: Instant::now(),
            paces: BTreeMap::new(),
        })
    }

    /// A URL is done.
    pub(super) fn visited(&mut self, record: &Record) -> io::Result<()> {
        if let Some(lines) = &mut self.lines {
            let mut line = serde_json::to_vec(record)?;
            line.push(b'\n');
            // One write for each line, so that a reader never meets half of one.
            lines.write_all(&line)?;
        }
        if self.quiet {
            return Ok(());
        }
        let status = record.status.map(|status| status.to_string());
        let from = match (record.from, &record.refusal) {
            (_, Some(_)) => "refused",
            _ if record.unchanged => "unchanged",
            (Some(from), None) => from.word(),
            (None, None) => "failed",
        };
        let mut note = String::new();
        if record.waited_ms > 0 {
            note = format!("  waited {:.2} s", record.waited_ms as f64 / 1000.0);
        }
        if record.noindex {
            note += "  noindex";
        }
        if let Some(refusal) = &record.refusal {
            note += &format!("  {refusal}");
        }
        if let Some(error) = &record.error {
            note += &format!("  {error}");
        }
        self.line(format_args!(
            "{:>3}  {from:<9}  {}{note}",
            status.as_deref().unwrap_or("-"),
            record.url
        ))
    }

    /// Says why `host` is visited at the pace it is, where that has changed.
    pub(super) fn pace(&mut self, host: &str, why: Why) -> io::Result<()> {
        if self
            .paces
            .get(host)
            .is_some_and(|known| known.is_like(&why))
        {
            return Ok(());
        }
        self.progress(format_args!("{host}: {why}"))?;
        self.paces.insert(host.to_owned(), why);
        Ok(())
    }

    /// A line of progress, left out when quiet.
    pub(super) fn progress(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        self.line(text)
    }

    /// A line of the summary.
    pub(super) fn summary(&mut self, text: impl fmt::Display) -> io::Result<()> {
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    fn line(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        let since = self.began.elapsed().as_secs_f64();
        writeln!(self.out, "{since:7.2} s  {text}")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::frontier::Found;
    use super::*;

    #[test]
    fn each_outcome_is_counted_once() {
        let mut tally = Tally::default();
        let mut record = Record::new("http://a.test/".to_owned(), Found::Start);
        tally.count(&record);
        for from in [From::Network, From::Validated, From::Cache] {
            record.from = Some(from);
            tally.count(&record);
        }
        assert_eq!(tally.urls(), 4);
        assert_eq!(
            tally.to_string(),
            "4 URLs in 0.0 s: 1 from the network, 1 validated, 1 from the cache, 0 refused, 1 failed"
        );
        record.unchanged = true;
        for _ in 0..3 {
            tally.count(&record);
        }
        (tally.unchanged_fresh, tally.lists) = (1, 1);
        assert_eq!((tally.urls(), tally.cache, tally.saved()), (7, 1, 1));
        assert_eq!(tally.json(2, false)["saved"], 1);
        assert!(
            tally.to_string().ends_with(
                "3 unchanged and not asked for; 1 request saved against following links alone: 2 stale copies were \
                 not asked about, less 1 for sitemaps and feeds"
            ),
            "{tally}"
        );
    }

    #[test]
    fn quiet_leaves_the_summary() {
        let mut out = Vec::new();
        let mut report = Report::new(&mut out, true, None).unwrap();
        report.progress(format_args!("a pace")).unwrap();
        report
            .visited(&Record::new("http://a.test/".to_owned(), Found::Start))
            .unwrap();
        report.summary("the end").unwrap();
        assert_eq!(out, b"the end\n");
    }
}
