//! What a timeline promises, checked on the origin's log.

use serde_json::Value;

use super::run::{Arrangement, Played, play};
use super::scenario::{Scenario, Submit};
use super::site::Arrival;

/// The tolerance on every instant.
const EPSILON: f64 = 0.005;

/// All expectations of a row; `Err` names the first that does not hold.
pub(crate) fn check(
    scenario: &Scenario,
    played: &Played,
    arrangement: Arrangement,
) -> Result<(), String> {
    for expect in &scenario.expect {
        let (key, value) = expect
            .as_object()
            .and_then(|object| object.iter().next())
            .expect("an expectation has one key");
        let outcome = match key.as_str() {
            "same_as_alone" => {
                let label = value["host"].as_str().unwrap();
                let tolerance = value["tolerance"].as_f64().unwrap_or(0.0) + EPSILON;
                as_alone(scenario, played, arrangement, label, tolerance)
            }
            "independent" => value.as_array().unwrap().iter().try_for_each(|label| {
                as_alone(
                    scenario,
                    played,
                    arrangement,
                    label.as_str().unwrap(),
                    EPSILON,
                )
            }),
            _ => Checker { played, value }.check(key),
        };
        outcome.map_err(|why| format!("{key} {value}: {why}"))?;
    }
    let keeps = |submit: &Submit| submit.row["hold_response"].is_boolean();
    let ended =
        scenario.submit.iter().any(keeps) || played.unfinished == 0 && played.left == (0, 0);
    truth(ended, || {
        format!(
            "{} callers hang, {:?} are left",
            played.unfinished, played.left
        )
    })
}

fn as_alone(
    scenario: &Scenario,
    played: &Played,
    arrangement: Arrangement,
    label: &str,
    tolerance: f64,
) -> Result<(), String> {
    let alone = play(&scenario.only(label), arrangement);
    let times = |played: &Played| -> Vec<f64> {
        let of_host = played.arrivals.iter().filter(|a| a.host == label);
        of_host.map(|a| a.at).collect()
    };
    let (with, without) = (times(played), times(&alone));
    // A store hears of the end of a body when the next one asks already: it may have to ask again, each time up to 28 ms
    // later. Nobody starts sooner.
    let later = if played.over_a_store { 0.028 } else { 0.0 };
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
    played: &'a Played,
    value: &'a Value,
}

impl Checker<'_> {
    fn check(&self, key: &str) -> Result<(), String> {
        match key {
            "no_arrival" => self.no_arrival(),
            "next_arrival" => self.next_arrival(),
            "arrival_of" => self.arrival_of(),
            "arrivals" => self.arrivals(),
            "min_gap" => self.min_delay(),
            "rate_ratio" => self.rate_ratio(),
            "rate_non_decreasing" => self.rate_non_decreasing(),
            "max_in_flight" => self.max_in_flight(),
            "max_in_any_window" => self.max_in_any_window(),
            "completed" => self.completed(),
            "errors" => self.errors(),
            "fifo" => self.fifo(),
            "pauses_grow" => self.pauses_grow(),
            "strikes" => {
                let host = self.text("host").unwrap().to_owned();
                let found = self.played.backoff_level[&(host, self.number("at").unwrap() as u64)];
                self.at_most("max", f64::from(found))
            }
            "tracked_hosts" => {
                let found = self.played.tracked[&(self.number("at").unwrap() as u64)];
                self.at_most("max", found as f64)
            }
            "same_name" => {
                let mut names: Vec<_> = self.on_host().map(|a| a.user_agent.clone()).collect();
                names.dedup();
                truth(names.len() == 1 && names[0].is_some(), || {
                    format!("{names:?}")
                })
            }
            "mean_gap_ratio" => self.mean_delay_ratio(),
            "gap_not_shorter" => self.delay_not_shorter(),
            "redirect_hop_wait" => self.redirect_hop_wait(),
            "all_hosts" => self.all_hosts(),
            other => Err(format!("unknown expectation {other}")),
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.value[key].as_f64()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.value[key].as_str()
    }

    /// Arrivals at the host, group or address, on the path or off it.
    fn on_host(&self) -> impl Iterator<Item = &Arrival> {
        let (path, except) = (self.text("path"), self.text("except"));
        self.played.arrivals.iter().filter(move |arrival| {
            self.is_named(arrival)
                && path.is_none_or(|path| path == arrival.path)
                && except.is_none_or(|except| except != arrival.path)
        })
    }

    fn is_named(&self, arrival: &Arrival) -> bool {
        if let Some(ip) = self.text("ip") {
            return self.played.dns[&arrival.host] == ip;
        }
        self.text("host").is_none_or(|name| {
            let bare = arrival.host.split(':').next().unwrap();
            match self.played.group.as_str() {
                "registrable_domain" => bare == name || bare.ends_with(&format!(".{name}")),
                "host" => bare == name,
                _ => arrival.host == name,
            }
        })
    }

    fn no_arrival(&self) -> Result<(), String> {
        let (from, to) = (self.number("from").unwrap(), self.number("to").unwrap());
        let leak = self
            .on_host()
            .find(|a| a.at >= from + EPSILON && a.at < to - EPSILON);
        truth(leak.is_none(), || format!("one at {}", leak.unwrap().at))
    }

    fn next_arrival(&self) -> Result<(), String> {
        let after = self.number("after").unwrap();
        let next = self.on_host().map(|a| a.at).find(|at| *at > after);
        match (next, self.number("le")) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err("none".into()),
            (Some(at), _) => self.within(at),
        }
    }

    fn arrival_of(&self) -> Result<(), String> {
        let id = self.text("id");
        let first = self.on_host().find(|a| {
            a.group
                .as_ref()
                .is_some_and(|group| group.id.as_deref() == id)
        });
        first.map_or_else(|| Err("none".into()), |a| self.within(a.at))
    }

    fn within(&self, at: f64) -> Result<(), String> {
        let holds = self.number("ge").is_none_or(|ge| at >= ge - EPSILON)
            && self.number("le").is_none_or(|le| at <= le + EPSILON);
        truth(holds, || format!("at {at}"))
    }

    fn arrivals(&self) -> Result<(), String> {
        let from = self.number("from").unwrap_or(0.0);
        let to = self.number("to").unwrap_or(f64::INFINITY);
        let count = self.on_host().filter(|a| a.at >= from && a.at < to).count() as f64;
        let holds = self.number("n").is_none_or(|n| n == count)
            && self.number("min").is_none_or(|min| count >= min)
            && self.number("max").is_none_or(|max| count <= max);
        truth(holds, || format!("{count}"))
    }

    fn min_delay(&self) -> Result<(), String> {
        let seconds = self.number("seconds").unwrap();
        let after = self.number("after").unwrap_or(0.0);
        let from_end = self.text("measure") == Some("end_start");
        let mut last: Option<&Arrival> = None;
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

    fn rate(&self, window: &Value) -> f64 {
        let (from, to) = (window[0].as_f64().unwrap(), window[1].as_f64().unwrap());
        let count = self.on_host().filter(|a| a.at >= from && a.at < to).count();
        count as f64 / (to - from)
    }

    fn rate_ratio(&self) -> Result<(), String> {
        let ratio = self.rate(&self.value["window"]) / self.rate(&self.value["reference"]);
        let holds = self.number("ratio_max").is_none_or(|max| ratio <= max)
            && self.number("ratio_min").is_none_or(|min| ratio >= min);
        truth(holds, || format!("{ratio}"))
    }

    fn rate_non_decreasing(&self) -> Result<(), String> {
        let (from, to) = (self.number("from").unwrap(), self.number("to").unwrap());
        let (bucket, slack) = (
            self.number("bucket").unwrap(),
            self.number("slack").unwrap(),
        );
        let mut rates = Vec::new();
        let mut at = from;
        while at + bucket <= to + EPSILON {
            rates.push(self.rate(&serde_json::json!([at, at + bucket])));
            at += bucket;
        }
        let holds = rates
            .windows(2)
            .all(|pair| pair[1] >= pair[0] * (1.0 - slack));
        truth(holds, || format!("{rates:?}"))
    }

    fn max_in_flight(&self) -> Result<(), String> {
        let most = self.number("n").unwrap() as i64;
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

    fn max_in_any_window(&self) -> Result<(), String> {
        let (seconds, n) = (self.number("seconds").unwrap(), self.number("n").unwrap());
        let times: Vec<f64> = self.on_host().map(|a| a.at).collect();
        for from in &times {
            let within = |at: &&f64| **at >= *from && **at <= from + seconds + EPSILON;
            let count = times.iter().filter(within).count() as f64;
            truth(count <= n, || format!("{count} from {from}"))?;
        }
        Ok(())
    }

    fn completed(&self) -> Result<(), String> {
        let by = self.number("by").unwrap_or(f64::INFINITY);
        let host = self.text("host").unwrap();
        let done = &self.played.completed;
        let count = done
            .iter()
            .filter(|done| done.host == host && done.at <= by + EPSILON)
            .count() as f64;
        truth(count >= self.number("n").unwrap(), || format!("{count}"))
    }

    fn errors(&self) -> Result<(), String> {
        let host = self.text("host").unwrap();
        let from = self.number("from").unwrap_or(0.0) - EPSILON;
        let by = self.number("by").unwrap_or(f64::INFINITY) + EPSILON;
        let found: Vec<_> = self
            .played
            .refusals
            .iter()
            .filter(|r| r.host == host && r.at >= from && r.at <= by)
            .filter(|r| Some(r.kind) == self.text("kind"))
            .collect();
        let count = found.len() as f64;
        let counted = self.number("n").is_none_or(|n| n == count)
            && self.number("min").is_none_or(|min| count >= min);
        truth(counted, || {
            format!("{count}: {:?}", self.played.refusals.first())
        })?;
        let Some(range) = self.value["retry_at"].as_array() else {
            return Ok(());
        };
        let (low, high) = (range[0].as_f64().unwrap(), range[1].as_f64().unwrap());
        let wrong = found.iter().find(|r| {
            r.retry_at
                .is_none_or(|at| at < low - EPSILON || at > high + EPSILON)
        });
        truth(wrong.is_none(), || format!("{wrong:?}"))
    }

    fn fifo(&self) -> Result<(), String> {
        let serials: Vec<_> = self
            .on_host()
            .filter_map(|a| a.group.as_ref())
            .map(|group| group.serial)
            .collect();
        truth(serials.is_sorted(), || format!("{serials:?}"))
    }

    fn pauses_grow(&self) -> Result<(), String> {
        let count = self.number("count").unwrap() as usize;
        let factor = self.number("factor_min").unwrap();
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
            .played
            .arrivals
            .iter()
            .filter(|a| a.host == host)
            .collect();
        let pair = |pair: &[&Arrival]| (pair[1].at, pair[1].at - pair[0].end.unwrap());
        of_host.windows(2).map(pair).collect()
    }

    fn mean_delay_ratio(&self) -> Result<(), String> {
        let mean = |key: &str| {
            let pauses = self.pauses_of(self.text(key).unwrap());
            pauses.iter().map(|(_, pause)| pause).sum::<f64>() / pauses.len() as f64
        };
        let ratio = mean("slow") / mean("fast");
        truth(ratio >= self.number("min").unwrap(), || format!("{ratio}"))
    }

    fn delay_not_shorter(&self) -> Result<(), String> {
        let pauses = self.pauses_of(self.text("host").unwrap());
        let (after, before) = (
            self.number("after").unwrap(),
            self.number("than_before").unwrap(),
        );
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

    fn redirect_hop_wait(&self) -> Result<(), String> {
        let seconds = self.number("seconds").unwrap();
        let all = &self.played.arrivals;
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

    fn all_hosts(&self) -> Result<(), String> {
        let mut by_host = std::collections::BTreeMap::<&str, Vec<f64>>::new();
        for arrival in &self.played.arrivals {
            by_host.entry(&arrival.host).or_default().push(arrival.at);
        }
        let count = self.number("count").unwrap() as usize;
        truth(by_host.len() == count, || {
            format!("{} hosts", by_host.len())
        })?;
        let delay = self.number("min_gap").unwrap() - EPSILON;
        for (host, times) in &by_host {
            let kept = times.windows(2).all(|pair| pair[1] - pair[0] >= delay);
            truth(kept, || format!("{host}: {times:?}"))?;
        }
        let by = self.number("by").unwrap() + EPSILON;
        let mut done = std::collections::BTreeMap::<&str, f64>::new();
        for one in self.played.completed.iter().filter(|done| done.at <= by) {
            *done.entry(&one.host).or_default() += 1.0;
        }
        let wanted = self.number("completed").unwrap();
        let all = done.len() == count && done.values().all(|n| *n >= wanted);
        truth(all, || format!("{} hosts are done", done.len()))
    }

    fn at_most(&self, key: &str, found: f64) -> Result<(), String> {
        truth(found <= self.number(key).unwrap(), || format!("{found}"))
    }
}

fn truth(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
