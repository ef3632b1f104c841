//! What is said about a file, for people and for programs.

use std::io::{self, Write};

use etiquette_robots::lint::Finding;
use etiquette_robots::{Group, ProductToken, Robots, Verdict};
use serde_json::{Value, json};

/// Writes text, or one JSON object per line.
pub(super) struct Report<'a> {
    out: &'a mut (dyn Write + Send),
    json: bool,
}

impl<'a> Report<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send), json: bool) -> Self {
        Self { out, json }
    }

    /// Whether `url` may be fetched, and by which rule.
    pub(super) fn verdict(&mut self, url: &str, verdict: &Verdict) -> io::Result<()> {
        if !self.json {
            return writeln!(self.out, "{url}: {verdict}");
        }
        let rule = verdict.rule().map(
            |rule| json!({"kind": rule.kind().as_str(), "text": rule.text(), "line": rule.line()}),
        );
        let row = json!({
            "url": url,
            "allowed": verdict.allowed(),
            "rule": rule,
            "group": verdict.group(),
            "why": verdict.to_string(),
        });
        writeln!(self.out, "{row}")
    }

    /// What crawlers will misread.
    pub(super) fn findings(&mut self, findings: &[Finding]) -> io::Result<()> {
        for finding in findings {
            if self.json {
                let row = json!({
                    "line": finding.line(),
                    "problem": finding.problem().name(),
                    "message": finding.problem().to_string(),
                });
                writeln!(self.out, "{row}")?;
            } else {
                writeln!(self.out, "{finding}")?;
            }
        }
        if findings.is_empty() && !self.json {
            writeln!(self.out, "nothing that crawlers will misread")?;
        }
        Ok(())
    }

    /// Says so where the file is not one that crawlers can use.
    pub(super) fn unusable(&mut self, robots: &Robots) -> io::Result<()> {
        match robots.unusable().filter(|_| !self.json) {
            Some(what) => writeln!(self.out, "unusable: {what}; everything is allowed"),
            None => Ok(()),
        }
    }

    /// The group that binds `token`, as crawlers read it.
    pub(super) fn group(&mut self, token: &ProductToken, group: &Group<'_>) -> io::Result<()> {
        if self.json {
            writeln!(self.out, "{}", as_json(token, group))
        } else {
            show(token, group, self.out)
        }
    }

    /// The sitemaps that the file names, which is at `base`.
    pub(super) fn sitemaps(&mut self, robots: &Robots, base: &str) -> io::Result<()> {
        if self.json {
            let sitemaps: Vec<String> = robots.sitemap_urls(base).collect();
            let row = json!({"sitemaps": sitemaps, "cut": robots.is_cut()});
            return writeln!(self.out, "{row}");
        }
        for (sitemap, line) in robots.sitemaps() {
            writeln!(self.out, "line {line}: Sitemap: {sitemap}")?;
        }
        if robots.is_cut() {
            writeln!(
                self.out,
                "the file is over 500 KiB: what lies beyond is not read"
            )?;
        }
        Ok(())
    }
}

fn as_json(token: &ProductToken, group: &Group<'_>) -> Value {
    let rules: Vec<Value> = group
        .rules()
        .iter()
        .map(|rule| json!({"kind": rule.kind().as_str(), "text": rule.text(), "line": rule.line()}))
        .collect();
    let records: Vec<Value> = group
        .records()
        .map(
            |record| json!({"name": record.name(), "value": record.value(), "line": record.line()}),
        )
        .collect();
    json!({
        "token": token.as_str(),
        "group": group.name(),
        "rules": rules,
        "crawl_delay_s": group.crawl_delay().map(|delay| delay.as_secs_f64()),
        "records": records,
    })
}

fn show(token: &ProductToken, group: &Group<'_>, out: &mut (dyn Write + Send)) -> io::Result<()> {
    match group.name() {
        Some("*") => writeln!(out, "{token} reads the group of `*`:")?,
        Some(_) => writeln!(out, "{token} reads its own group:")?,
        None => writeln!(out, "{token} has no group and may fetch everything")?,
    }
    let rules = group.rules();
    for rule in &rules {
        writeln!(out, "  line {}: {rule}", rule.line())?;
    }
    if rules.is_empty() && group.name().is_some() {
        writeln!(out, "  no rule: everything is allowed")?;
    }
    if let Some(delay) = group.crawl_delay() {
        writeln!(out, "  Crawl-delay: {} s", delay.as_secs_f64())?;
    }
    for record in group.records() {
        writeln!(
            out,
            "  line {}: {}: {}",
            record.line(),
            record.name(),
            record.value()
        )?;
    }
    Ok(())
}
