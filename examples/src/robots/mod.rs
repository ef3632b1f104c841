//! What a robots.txt says, for those who write one and those who obey one.
//!
//! `check` answers for URLs and names the rule and its line, `explain` shows the groups as crawlers read them, `lint`
//! shows what they will misread. The file is one on disk, `-` for standard input, or that of a site.

mod args;
mod error;
mod report;
mod source;

use std::io::Write;

use etiquette_robots::lint::lint;
use etiquette_robots::{ProductToken, Robots, path_to_match, robots_url};

pub use args::{Args, Command};
pub use error::Error;
pub use source::Source;

use report::Report;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// All is allowed, or there is nothing to find fault with.
    Fine,
    /// Something is disallowed, or there is.
    NotFine,
}

impl Answer {
    /// The exit status.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::NotFine => 1,
        }
    }

    const fn fine_if(fine: bool) -> Self {
        if fine { Self::Fine } else { Self::NotFine }
    }
}

/// Does what `args` say and writes the answer to `out`.
///
/// # Errors
/// When the file cannot be read, a page is not one of its site, or `out` cannot be written to.
pub async fn run(args: &Args, out: &mut (dyn Write + Send)) -> Result<Answer, Error> {
    let mut report = Report::new(out, args.command.source().json);
    match &args.command {
        Command::Check {
            source,
            tokens,
            urls,
        } => {
            let bytes = source.read(tokens).await?;
            check(&bytes, source, tokens, urls, &mut report)
        }
        Command::Explain { source, tokens } => {
            let bytes = source.read(tokens).await?;
            explain(&bytes, source, tokens, &mut report)
        }
        Command::Lint { source } => {
            let bytes = source.read(&[]).await?;
            let findings = lint(&bytes);
            report.findings(&findings)?;
            Ok(Answer::fine_if(findings.is_empty()))
        }
    }
}

fn check(
    bytes: &[u8],
    source: &Source,
    tokens: &[ProductToken],
    urls: &[String],
    report: &mut Report<'_>,
) -> Result<Answer, Error> {
    let robots = Robots::builder()
        .tokens(tokens.iter().cloned())
        .parse(bytes);
    let group = robots.group_of(tokens);
    let paths = urls
        .iter()
        .map(|url| path_of(url, source))
        .collect::<Result<Vec<_>, _>>()?;
    let mut fine = true;
    for (url, path) in urls.iter().zip(paths) {
        let verdict = group.check(path.as_bytes());
        fine &= verdict.allowed();
        report.verdict(url, &verdict)?;
    }
    Ok(Answer::fine_if(fine))
}

/// What the rules are compared with for `url`.
fn path_of(url: &str, source: &Source) -> Result<String, Error> {
    if url.starts_with('/') {
        return Ok(url.to_owned());
    }
    let path = path_to_match(url).ok_or_else(|| Error::NotAUrl(url.to_owned()))?;
    match source.site() {
        Some(site) if robots_url(url).as_ref() != Some(&site) => {
            Err(Error::OtherSite(url.to_owned()))
        }
        _ => Ok(path.into_owned()),
    }
}

fn explain(
    bytes: &[u8],
    source: &Source,
    tokens: &[ProductToken],
    report: &mut Report<'_>,
) -> Result<Answer, Error> {
    let robots = Robots::parse(bytes);
    report.unusable(&robots)?;
    let mut tokens = tokens.to_vec();
    // A name that no file has, for what holds for all others.
    let others: ProductToken = "any-other".parse().expect("letters and a hyphen");
    if tokens.is_empty() {
        tokens.extend(robots.group_names().filter_map(|name| name.parse().ok()));
        tokens.push(others);
    }
    for token in &tokens {
        let group = robots.group(token);
        report.group(token, &group)?;
    }
    let site = source.site();
    let base = site
        .as_deref()
        .unwrap_or("https://www.example.com/robots.txt");
    report.sitemaps(&robots, base)?;
    Ok(Answer::Fine)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;
    use crate::site;

    fn planted(name: &str) -> String {
        format!("{}/src/robots/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    async fn ran(args: &[&str]) -> (Result<Answer, String>, String) {
        let args = Args::try_parse_from([&["robots"], args].concat()).unwrap();
        let mut out = Vec::new();
        let answer = run(&args, &mut out)
            .await
            .map_err(|error| error.to_string());
        (answer, String::from_utf8(out).unwrap())
    }

    #[tokio::test]
    async fn check_names_rule_and_line() {
        let file = planted("planted.txt");
        let (answer, text) = ran(&[
            "check",
            &file,
            "--token",
            "ExampleBot",
            "/a/x",
            "https://www.example.com/b",
        ])
        .await;
        assert_eq!(answer, Ok(Answer::NotFine));
        assert_eq!(
            text,
            "/a/x: disallowed by line 4 (`Disallow: /a/`) in the group of `*`\n\
             https://www.example.com/b: allowed: no rule matches in the group of `*`\n"
        );
        let (answer, text) = ran(&["check", &file, "--json", "--token", "ExampleBot", "/b"]).await;
        assert_eq!(answer, Ok(Answer::Fine));
        let row: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&row["allowed"], &row["rule"], &row["group"]),
            (&json!(true), &Value::Null, &json!("*"))
        );
    }

    #[tokio::test]
    async fn explain_shows_each_group() {
        let (answer, text) = ran(&["explain", &planted("planted.txt")]).await;
        assert_eq!(answer, Ok(Answer::Fine));
        assert!(
            text.contains("OtherBot reads its own group:\n  line 14: Disallow: /b/\n"),
            "{text}"
        );
        assert!(
            text.contains("any-other reads the group of `*`:\n  line 4: Disallow: /a/\n"),
            "{text}"
        );
        assert!(text.ends_with("line 19: Sitemap: /sitemap.xml\n"), "{text}");
    }

    #[tokio::test]
    async fn lint_finds_the_planted_faults() {
        let (answer, text) = ran(&["lint", &planted("planted.txt"), "--json"]).await;
        assert_eq!(answer, Ok(Answer::NotFine));
        let found: Vec<(u64, String)> = text
            .lines()
            .map(|line| {
                let row: Value = serde_json::from_str(line).unwrap();
                (
                    row["line"].as_u64().unwrap(),
                    row["problem"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        let expected = [
            (1, "outside-group"),
            (5, "missing-colon"),
            (6, "misspelled"),
            (7, "rule-without-slash"),
            (8, "url-as-rule"),
            (9, "never-decides"),
            (11, "shadows-star"),
            (12, "between-user-agents"),
            (13, "shadows-star"),
            (17, "split-group"),
            (19, "sitemap-not-absolute"),
        ];
        let expected: Vec<(u64, String)> = expected
            .iter()
            .map(|(line, name)| (*line, (*name).to_owned()))
            .collect();
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn a_site_is_asked_for_its_file() {
        let site = site::serve().await.unwrap();
        let (private, open) = (site.url("/private/diary.html"), site.url("/about.html"));
        let check = |url: &str| {
            let args: Vec<String> = [
                "check",
                &site.url("/"),
                "--allow-private",
                "--token",
                "ExampleBot",
                url,
            ]
            .map(str::to_owned)
            .into();
            async move { ran(&args.iter().map(String::as_str).collect::<Vec<_>>()).await }
        };
        assert_eq!(check(&open).await.0, Ok(Answer::Fine));
        let (answer, text) = check(&private).await;
        assert_eq!(answer, Ok(Answer::NotFine), "{text}");
        assert!(check("https://www.example.com/").await.0.is_err());
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_an_error() {
        let (answer, _) = ran(&["lint", "no-such-file.txt"]).await;
        assert_eq!(answer, Err("no-such-file.txt cannot be read".to_owned()));
        let (answer, _) = ran(&["lint", "http://127.0.0.1:9/"]).await;
        assert!(answer.unwrap_err().contains("--allow-private"));
        let (answer, _) = ran(&[
            "check",
            &planted("planted.txt"),
            "--token",
            "a",
            "mailto:a@example.com",
        ])
        .await;
        assert!(answer.unwrap_err().contains("mailto:a@example.com"));
    }
}
