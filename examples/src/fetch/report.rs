//! What the program says about a page, for people and for programs.

use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};
use tower_etiquette::Refusal;
use tower_etiquette::preferences::Use;

use super::args::Args;
use super::outcome::{Failure, Page};

/// What is said.
pub(super) struct Report(Value);

impl Report {
    pub(super) fn page(args: &Args, page: &Page) -> Self {
        let headers: serde_json::Map<String, Value> = page
            .headers
            .keys()
            .map(|name| {
                let lines = page.headers.get_all(name).iter();
                let lines: Vec<_> = lines
                    .map(|value| String::from_utf8_lossy(value.as_bytes()))
                    .collect();
                (name.to_string(), json!(lines.join(", ")))
            })
            .collect();
        let preferences = page.facts.preferences().map(|preferences| {
            let wish = |what| preferences.about(what).to_string();
            json!({
                "train-ai": wish(Use::TrainAi),
                "search": wish(Use::Search),
                "ai-input": wish(Use::AiInput),
                "directives": preferences.directives().iter().collect::<Vec<_>>(),
            })
        });
        let mut report = json!({
            "url": args.url,
            "status": page.status.as_u16(),
            "headers": headers,
            "bytes": page.body.len(),
            "waited_ms": u64::try_from(page.facts.waited().as_millis()).unwrap_or(u64::MAX),
            "may_train": page.facts.may_train(),
            "may_retain": page.facts.may_retain(),
            "preferences": preferences,
        });
        if args.output.is_none() {
            report["body"] = json!(String::from_utf8_lossy(&page.body));
        }
        Self(report)
    }

    pub(super) fn failure(args: &Args, failure: &Failure) -> Self {
        let mut report = json!({ "url": args.url, "reason": failure.to_string() });
        if let Failure::Request(error) = failure
            && let Some(refusal) = error.refusal()
        {
            report["refusal"] = self::refusal(refusal);
        }
        Self(report)
    }

    pub(super) fn took(&mut self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.0["took_ms"] = json!(millis);
    }

    /// Why there is no page.
    pub(super) fn reason(&self) -> String {
        match (&self.0["reason"], &self.0["status"]) {
            (Value::String(reason), _) => reason.clone(),
            (_, status) => format!("the site answered {status}"),
        }
    }

    /// One line of JSON; the body goes to the file, if there is one.
    pub(super) fn write_json(
        &self,
        args: &Args,
        page: Option<&Page>,
        out: &mut (dyn Write + Send),
    ) -> io::Result<()> {
        writeln!(out, "{}", self.0)?;
        match (&args.output, page) {
            (Some(path), Some(page)) => std::fs::write(path, &page.body),
            _ => Ok(()),
        }
    }

    pub(super) fn write_page(
        &self,
        args: &Args,
        page: &Page,
        out: &mut (dyn Write + Send),
    ) -> io::Result<()> {
        let mut file;
        let out = match &args.output {
            Some(path) => {
                file = File::create(path)?;
                &mut file as &mut dyn Write
            }
            None => out,
        };
        if args.include {
            writeln!(out, "{:?} {}\r", page.version, page.status)?;
            for (name, value) in &page.headers {
                write!(out, "{name}: ")?;
                out.write_all(value.as_bytes())?;
                out.write_all(b"\r\n")?;
            }
            out.write_all(b"\r\n")?;
        }
        out.write_all(&page.body)?;
        out.flush()
    }
}

fn refusal(refusal: &Refusal) -> Value {
    let rule = refusal.rule();
    json!({
        "kind": refusal.kind(),
        "site": refusal.origin().map(ToString::to_string),
        "rule": rule.map(ToString::to_string),
        "line": rule.map(|rule| rule.line()),
        "retry_at": refusal
            .retry_at()
            .map(|at| httpdate::HttpDate::from(at).to_string()),
        "contact": refusal.contact(),
    })
}
