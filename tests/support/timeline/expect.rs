//! What a timeline promises, checked on what was observed.

use serde_json::Value;

use super::arrangement::Arrangement;
use super::observed::{Observed, ObservedRequest};
use super::run::play;
use super::scenario::{Scenario, Submit};
use crate::vectors::Kind::{List, Number, Text};
use crate::vectors::{Kind, RowResult, any_text, list, number, only_keys, text, unknown};

/// The tolerance on every instant.
const EPSILON: f64 = 0.005;

/// Expectations and what each says: which requests it is about (`host`, `ip`, `path` or all but `except`), and bounds.
const EXPECTATIONS: &[(&str, &[(&str, Kind)])] = &[
    (
        "all_hosts",
        &[
            ("by", Number),
            ("completed", Number),
            ("count", Number),
            ("min_delay", Number),
        ],
    ),
    (
        "arrival_of",
        &[
            ("id", Text),
            ("ge", Number),
            ("le", Number),
            ("host", Text),
            ("path", Text),
            ("except", Text),
        ],
    ),
    (
        "arrivals",
        &[
            ("from", Number),
            ("to", Number),
            ("n", Number),
            ("min", Number),
            ("max", Number),
            ("host", Text),
            ("ip", Text),
            ("path", Text),
            ("except", Text),
        ],
    ),
    (
        "backoff_level",
        &[("at", Number), ("host", Text), ("max", Number)],
    ),
    (
        "completed",
        &[("by", Number), ("host", Text), ("n", Number)],
    ),
    (
        "delay_not_shorter",
        &[
            ("after", Number),
            ("than_before", Number),
            ("host", Text),
            ("measure", Text),
        ],
    ),
    (
        "errors",
        &[
            ("by", Number),
            ("from", Number),
            ("host", Text),
            ("kind", Text),
            ("min", Number),
            ("n", Number),
            ("retry_at", List),
        ],
    ),
    ("fifo", &[("host", Text), ("path", Text), ("except", Text)]),
    (
        "max_in_any_window",
        &[
            ("n", Number),
            ("seconds", Number),
            ("host", Text),
            ("ip", Text),
            ("path", Text),
            ("except", Text),
        ],
    ),
    (
        "max_in_flight",
        &[
            ("n", Number),
            ("host", Text),
            ("ip", Text),
            ("path", Text),
            ("except", Text),
        ],
    ),
    (
        "mean_delay_ratio",
        &[
            ("fast", Text),
            ("slow", Text),
            ("min", Number),
            ("measure", Text),
        ],
    ),
    (
        "min_delay",
        &[
            ("seconds", Number),
            ("after", Number),
            ("measure", Text),
            ("host", Text),
            ("ip", Text),
            ("path", Text),
            ("except", Text),
        ],
    ),
    (
        "next_arrival",
        &[
            ("after", Number),
            ("ge", Number),
            ("le", Number),
            ("host", Text),
            ("ip", Text),
            ("path", Text),
            ("except", Text),
        ],
    ),
    (
        "no_arrival",
        &[
            ("from", Number),
            ("to", Number),
            ("host", Text),
            ("ip", Text),
            ("path", Text),
            ("except", Text),
        ],
    ),
    (
        "pauses_grow",
        &[("count", Number), ("factor_min", Number), ("host", Text)],
    ),
    (
        "rate_non_decreasing",
        &[
            ("bucket", Number),
            ("slack", Number),
            ("from", Number),
            ("to", Number),
            ("host", Text),
            ("path", Text),
            ("except", Text),
        ],
    ),
    (
        "rate_ratio",
        &[
            ("window", List),
            ("reference", List),
            ("ratio_max", Number),
            ("ratio_min", Number),
            ("host", Text),
            ("path", Text),
            ("except", Text),
        ],
    ),
    ("redirect_hop_wait", &[("seconds", Number), ("host", Text)]),
    ("same_as_alone", &[("host", Text), ("tolerance", Number)]),
    ("same_name", &[("host", Text)]),
    ("tracked_hosts", &[("at", Number), ("max", Number)]),
];

/// The kinds of refusals that a row may expect.
const REFUSALS: &[&str] = &[
    "blocked",
    "crawl_delay_too_long",
    "disallowed",
    "hosts_full",
    "paused",
    "queue_full",
    "robots_unreachable",
    "unread_body",
];

/// The spans that a delay may be measured over.
const MEASURES: &[&str] = &["start_start", "end_start"];

/// All expectations of a row.
///
/// # Errors
/// The first that does not hold, or that is not known.
pub fn check(scenario: &Scenario, observed: &Observed, arrangement: Arrangement) -> RowResult {
    let alone =
        |label: &str, tolerance: f64| as_alone(scenario, observed, arrangement, label, tolerance);
    for expect in &scenario.expect {
        let (key, value) = only_one(expect)?;
        let outcome = match key {
            "independent" => list(expect, key)?
                .iter()
                .try_for_each(|label| alone(any_text(label)?, EPSILON)),
            "same_as_alone" => {
                known(key, value)?;
                let tolerance = value["tolerance"].as_f64().unwrap_or(0.0) + EPSILON;
                alone(text(value, "host")?, tolerance)
            }
            _ => {
                known(key, value)?;
                Checker { observed, value }.check(key)
            }
        };
        outcome.map_err(|why| format!("{key} {value}: {why}"))?;
    }
    let keeps = |submit: &Submit| submit.row["hold_response"].is_boolean();
    let ended =
        scenario.submit.iter().any(keeps) || observed.unfinished == 0 && observed.left == (0, 0);
    truth(ended, || {
        format!(
            "{} callers hang, {:?} are left",
            observed.unfinished, observed.left
        )
    })
}

/// The one expectation of an object.
fn only_one(expect: &Value) -> Result<(&str, &Value), String> {
    let mut all = expect.as_object().into_iter().flatten();
    match (all.next(), all.next()) {
        (Some((key, value)), None) => Ok((key, value)),
        _ => Err(unknown(expect)),
    }
}

/// Fails where the expectation `key` is not known, or says something that is not.
fn known(key: &str, value: &Value) -> RowResult {
    let (_, keys) = EXPECTATIONS
        .iter()
        .find(|(known, _)| *known == key)
        .ok_or_else(|| unknown(key))?;
    only_keys(value, key, keys)?;
    for (key, words) in [("kind", REFUSALS), ("measure", MEASURES)] {
        if let Some(word) = value[key].as_str().filter(|word| !words.contains(word)) {
            return Err(unknown(format_args!("the {key} {word:?}")));
        }
    }
    Ok(())
}

fn as_alone(
    scenario: &Scenario,
    observed: &Observed,
    arrangement: Arrangement,
    label: &str,
    tolerance: f64,
) -> RowResult {
    let alone = play(&scenario.only(label), arrangement)?;
    let times = |observed: &Observed| -> Vec<f64> {
        let of_host = observed.requests.iter().filter(|a| a.host == label);
        of_host.map(|a| a.at).collect()
    };
    let (with, without) = (times(observed), times(&alone));
    // A store hears of the end of a body when the next one asks already: it may have to ask again, each time up to 28 ms
    // later. Nobody starts sooner.
    let later = if observed.over_a_store { 0.028 } else { 0.0 };
    let same =
        with.len() == without.len()
            && with.iter().zip(&without).enumerate().all(|(n, (a, b))| {
                *a >= b - tolerance && *a <= b + tolerance + later * (n + 1) as f64
            });
    truth(same && !with.is_empty(), || {
        format!("{with:?}, alone {without:?}")
    })
}

struct Checker<'a> {
    observed: &'a Observed,
    value: &'a Value,
}

impl Checker<'_> {
    fn check(&self, key: &str) -> RowResult {
        match key {
            "no_arrival" => self.no_arrival(),
            "next_arrival" => self.next_arrival(),
            "arrival_of" => self.arrival_of(),
            "arrivals" => self.arrivals(),
            "min_delay" => self.min_delay(),
            "rate_ratio" => self.rate_ratio(),
            "rate_non_decreasing" => self.rate_non_decreasing(),
            "max_in_flight" => self.max_in_flight(),
            "max_in_any_window" => self.max_in_any_window(),
            "completed" => self.completed(),
            "errors" => self.errors(),
            "fifo" => self.fifo(),
            "pauses_grow" => self.pauses_grow(),
            "backoff_level" => {
                let host = text(self.value, "host")?.to_owned();
                let at = self.required("at")? as u64;
                let levels = &self.observed.backoff_levels;
                let found = levels.get(&(host, at)).ok_or("nobody looked then")?;
                self.at_most("max", f64::from(*found))
            }
            "tracked_hosts" => {
                let at = self.required("at")? as u64;
                let found = self.observed.tracked.get(&at).ok_or("nobody looked then")?;
                self.at_most("max", *found as f64)
            }
            "same_name" => {
                let mut names: Vec<_> = self.on_host().map(|a| a.user_agent.clone()).collect();
                names.dedup();
                truth(names.len() == 1 && names[0].is_some(), || {
                    format!("{names:?}")
                })
            }
            "mean_delay_ratio" => self.mean_delay_ratio(),
            "delay_not_shorter" => self.delay_not_shorter(),
            "redirect_hop_wait" => self.redirect_hop_wait(),
            "all_hosts" => self.all_hosts(),
            other => Err(unknown(other)),
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.value[key].as_f64()
    }

    fn required(&self, key: &str) -> Result<f64, String> {
        number(self.value, key)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.value[key].as_str()
    }

    /// Arrivals at the host, group or address, on the path or off it.
    fn on_host(&self) -> impl Iterator<Item = &ObservedRequest> {
        let (path, except) = (self.text("path"), self.text("except"));
        self.observed.requests.iter().filter(move |arrival| {
            self.is_named(arrival)
                && path.is_none_or(|path| path == arrival.path)
                && except.is_none_or(|except| except != arrival.path)
        })
    }

    fn is_named(&self, arrival: &ObservedRequest) -> bool {
        if let Some(ip) = self.text("ip") {
            return self.observed.dns[&arrival.host] == ip;
        }
        self.text("host").is_none_or(|name| {
            let bare = arrival.host.split(':').next().unwrap();
            match self.observed.group.as_str() {
                "registrable_domain" => bare == name || bare.ends_with(&format!(".{name}")),
                "host" => bare == name,
                _ => arrival.host == name,
            }
        })
    }

    fn no_arrival(&self) -> RowResult {
        let (from, to) = (self.required("from")?, self.required("to")?);
        let leak = self
            .on_host()
            .find(|a| a.at >= from + EPSILON && a.at < to - EPSILON);
        truth(leak.is_none(), || format!("one at {}", leak.unwrap().at))
    }

    fn next_arrival(&self) -> RowResult {
        let after = self.required("after")?;
        let next = self.on_host().map(|a| a.at).find(|at| *at > after);
        match (next, self.number("le")) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err("none".into()),
            (Some(at), _) => self.within(at),
        }
    }

    fn arrival_of(&self) -> RowResult {
        let id = self.text("id");
        let first = self.on_host().find(|a| {
            a.group
                .as_ref()
                .is_some_and(|group| group.id.as_deref() == id)
        });
        first.map_or_else(|| Err("none".into()), |a| self.within(a.at))
    }

    fn within(&self, at: f64) -> RowResult {
        let holds = self.number("ge").is_none_or(|ge| at >= ge - EPSILON)
            && self.number("le").is_none_or(|le| at <= le + EPSILON);
        truth(holds, || format!("at {at}"))
    }

    fn arrivals(&self) -> RowResult {
        let from = self.number("from").unwrap_or(0.0);
        let to = self.number("to").unwrap_or(f64::INFINITY);
        let count = self.on_host().filter(|a| a.at >= from && a.at < to).count() as f64;
        let holds = self.number("n").is_none_or(|n| n == count)
            && self.number("min").is_none_or(|min| count >= min)
            && self.number("max").is_none_or(|max| count <= max);
        truth(holds, || format!("{count}"))
    }

    fn min_delay(&self) -> RowResult {
        let seconds = self.required("seconds")?;
        let after = self.number("after").unwrap_or(0.0);
        let from_end = self.text("measure") == Some("end_start");
        let mut last: Option<&ObservedRequest> = None;
        for arrival in self.on_host().filter(|a| a.at >= after - EPSILON) {
            if let Some(last) = last {
                let from = if from_end {
                    last.end.unwrap_or(f64::INFINITY)
                } else {
                    last.at
                };
                truth(arrival.at - from >= seconds - EPSILON, || {
                    format!("{from} to {}", arrival.at)
                })?;
            }
            last = Some(arrival);
        }
        Ok(())
    }

    /// Requests in a second, from the one instant to the other.
    fn rate(&self, (from, to): (f64, f64)) -> f64 {
        let count = self.on_host().filter(|a| a.at >= from && a.at < to).count();
        count as f64 / (to - from)
    }

    fn rate_ratio(&self) -> RowResult {
        let rate = |key: &str| Ok::<_, String>(self.rate(range(&self.value[key])?));
        let ratio = rate("window")? / rate("reference")?;
        let holds = self.number("ratio_max").is_none_or(|max| ratio <= max)
            && self.number("ratio_min").is_none_or(|min| ratio >= min);
        truth(holds, || format!("{ratio}"))
    }

    fn rate_non_decreasing(&self) -> RowResult {
        let (from, to) = (self.required("from")?, self.required("to")?);
        let (bucket, slack) = (self.required("bucket")?, self.required("slack")?);
        let mut rates = Vec::new();
        let mut at = from;
        while at + bucket <= to + EPSILON {
            rates.push(self.rate((at, at + bucket)));
            at += bucket;
        }
        let holds = rates
            .windows(2)
            .all(|pair| pair[1] >= pair[0] * (1.0 - slack));
        truth(holds, || format!("{rates:?}"))
    }

    fn max_in_flight(&self) -> RowResult {
        let most = self.required("n")? as i64;
        let mut changes: Vec<(f64, i64)> = Vec::new();
        for arrival in self.on_host() {
            changes.push((arrival.at, 1));
            changes.push((arrival.end.unwrap_or(f64::INFINITY), -1));
        }
        // At one instant ends count before starts.
        changes.sort_by(|one, two| one.0.total_cmp(&two.0).then(one.1.cmp(&two.1)));
        let mut now = 0;
        for (at, change) in changes {
            now += change;
            truth(now <= most, || format!("{now} at {at}"))?;
        }
        Ok(())
    }

    fn max_in_any_window(&self) -> RowResult {
        let (seconds, n) = (self.required("seconds")?, self.required("n")?);
        let times: Vec<f64> = self.on_host().map(|a| a.at).collect();
        for from in &times {
            let within = |at: &&f64| **at >= *from && **at <= from + seconds + EPSILON;
            let count = times.iter().filter(within).count() as f64;
            truth(count <= n, || format!("{count} from {from}"))?;
        }
        Ok(())
    }

    fn completed(&self) -> RowResult {
        let by = self.number("by").unwrap_or(f64::INFINITY);
        let host = text(self.value, "host")?;
        let done = &self.observed.completed;
        let count = done
            .iter()
            .filter(|done| done.host == host && done.at <= by + EPSILON)
            .count() as f64;
        truth(count >= self.required("n")?, || format!("{count}"))
    }

    fn errors(&self) -> RowResult {
        let host = text(self.value, "host")?;
        let from = self.number("from").unwrap_or(0.0) - EPSILON;
        let by = self.number("by").unwrap_or(f64::INFINITY) + EPSILON;
        let found: Vec<_> = self
            .observed
            .refusals
            .iter()
            .filter(|r| r.host == host && r.at >= from && r.at <= by)
            .filter(|r| Some(r.kind) == self.text("kind"))
            .collect();
        let count = found.len() as f64;
        let counted = self.number("n").is_none_or(|n| n == count)
            && self.number("min").is_none_or(|min| count >= min);
        truth(counted, || {
            format!("{count}: {:?}", self.observed.refusals.first())
        })?;
        let retry_at = &self.value["retry_at"];
        if retry_at.is_null() {
            return Ok(());
        }
        let (low, high) = range(retry_at)?;
        let wrong = found.iter().find(|r| {
            r.retry_at
                .is_none_or(|at| at < low - EPSILON || at > high + EPSILON)
        });
        truth(wrong.is_none(), || format!("{wrong:?}"))
    }

    fn fifo(&self) -> RowResult {
        let serials: Vec<_> = self
            .on_host()
            .filter_map(|a| a.group.as_ref())
            .map(|group| group.serial)
            .collect();
        truth(serials.is_sorted(), || format!("{serials:?}"))
    }

    fn pauses_grow(&self) -> RowResult {
        let count = self.required("count")? as usize;
        let factor = self.required("factor_min")?;
        let times: Vec<f64> = self.on_host().map(|a| a.at).collect();
        truth(times.len() > 10 + count, || {
            format!("{} arrivals", times.len())
        })?;
        let pauses: Vec<f64> = (10..10 + count).map(|i| times[i + 1] - times[i]).collect();
        let grow = pauses.windows(2).all(|pair| pair[1] >= pair[0] * factor);
        truth(grow, || format!("{pauses:?}"))
    }

    /// From the end of a body to the next start, with the instant of the start.
    fn pauses_of(&self, host: &str) -> Vec<(f64, f64)> {
        let of_host: Vec<_> = self
            .observed
            .requests
            .iter()
            .filter(|a| a.host == host)
            .collect();
        let pair = |pair: &[&ObservedRequest]| {
            let end = pair[0].end.unwrap_or(f64::INFINITY);
            (pair[1].at, pair[1].at - end)
        };
        of_host.windows(2).map(pair).collect()
    }

    fn mean_delay_ratio(&self) -> RowResult {
        let mean = |key: &str| {
            let pauses = self.pauses_of(text(self.value, key)?);
            let sum: f64 = pauses.iter().map(|(_, pause)| pause).sum();
            Ok::<_, String>(sum / pauses.len() as f64)
        };
        let ratio = mean("slow")? / mean("fast")?;
        truth(ratio >= self.required("min")?, || format!("{ratio}"))
    }

    fn delay_not_shorter(&self) -> RowResult {
        let pauses = self.pauses_of(text(self.value, "host")?);
        let (after, before) = (self.required("after")?, self.required("than_before")?);
        let of = |keep: &dyn Fn(f64) -> bool| -> Vec<f64> {
            let kept = pauses.iter().filter(|(at, _)| keep(*at));
            kept.map(|(_, pause)| *pause).collect()
        };
        let longest = of(&|at| at < before).into_iter().fold(0.0, f64::max);
        let shortest = of(&|at| at >= after)
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        truth(shortest >= longest - EPSILON, || {
            format!("{shortest} after, {longest} before")
        })
    }

    fn redirect_hop_wait(&self) -> RowResult {
        let seconds = self.required("seconds")?;
        let all = &self.observed.requests;
        for hop in self.on_host() {
            let Some(group) = hop.group.as_ref().filter(|group| group.hop > 0) else {
                continue;
            };
            let sender = all.iter().find(|a| {
                a.group
                    .as_ref()
                    .is_some_and(|g| g.serial == group.serial && g.hop + 1 == group.hop)
            });
            let head = sender
                .and_then(|a| a.head)
                .ok_or("a hop without a sender")?;
            truth(hop.at - head >= seconds - EPSILON, || {
                format!("{head} to {}", hop.at)
            })?;
        }
        Ok(())
    }

    fn all_hosts(&self) -> RowResult {
        let mut by_host = std::collections::BTreeMap::<&str, Vec<f64>>::new();
        for arrival in &self.observed.requests {
            by_host.entry(&arrival.host).or_default().push(arrival.at);
        }
        let count = self.required("count")? as usize;
        truth(by_host.len() == count, || {
            format!("{} hosts", by_host.len())
        })?;
        let delay = self.required("min_delay")? - EPSILON;
        for (host, times) in &by_host {
            let kept = times.windows(2).all(|pair| pair[1] - pair[0] >= delay);
            truth(kept, || format!("{host}: {times:?}"))?;
        }
        let by = self.required("by")? + EPSILON;
        let mut done = std::collections::BTreeMap::<&str, f64>::new();
        for one in self.observed.completed.iter().filter(|done| done.at <= by) {
            *done.entry(&one.host).or_default() += 1.0;
        }
        let wanted = self.required("completed")?;
        let all = done.len() == count && done.values().all(|n| *n >= wanted);
        truth(all, || format!("{} hosts are done", done.len()))
    }

    fn at_most(&self, key: &str, found: f64) -> RowResult {
        truth(found <= self.required(key)?, || format!("{found}"))
    }
}

/// Two numbers.
fn range(value: &Value) -> Result<(f64, f64), String> {
    let ends = (value[0].as_f64(), value[1].as_f64());
    match ends {
        (Some(from), Some(to)) => Ok((from, to)),
        _ => Err(unknown(format_args!("{value} are no two numbers"))),
    }
}

fn truth(holds: bool, why: impl FnOnce() -> String) -> RowResult {
    if holds { Ok(()) } else { Err(why()) }
}
