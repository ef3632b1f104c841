//! One function for each promise: what the log must say for it to hold.

use std::collections::BTreeSet;
use std::time::Duration;

use http::header::{ETAG, LAST_MODIFIED};

use super::{Outcome, PromiseCheck};
use crate::site::Entry;

/// Every request has the same User-Agent, with the token as a word and a link in it.
#[must_use]
pub fn named(log: &[Entry], token: &str) -> PromiseCheck {
    const PROMISE: &str = "named";
    let Some(first) = log.first() else {
        return PromiseCheck::new(PROMISE, Outcome::Unseen, "no request");
    };
    let name = first.user_agent();
    let has_token = name
        .split(|c: char| !(c.is_ascii_alphabetic() || c == '_' || c == '-'))
        .any(|word| word == token);
    let has_link = name.contains("https://") || name.contains("http://");
    let same = log.iter().filter(|e| e.user_agent() == name).count();
    PromiseCheck::of(
        PROMISE,
        has_token && has_link && same == log.len(),
        format!("{same} of {} requests as {name:?}", log.len()),
    )
}

/// No page arrives before an answer to robots.txt has been handed over.
#[must_use]
pub fn robots_first(log: &[Entry]) -> PromiseCheck {
    const PROMISE: &str = "robots first";
    let read = log
        .iter()
        .filter(|e| e.is_robots_txt())
        .filter_map(|e| e.ended)
        .min();
    let early = |e: &&Entry| read.is_none_or(|read| e.at < read);
    let pages: Vec<&Entry> = log.iter().filter(|e| !e.is_robots_txt()).collect();
    let early = pages.iter().copied().filter(early).count();
    let counted = match read {
        None => format!("robots.txt was never read, {early} pages were"),
        Some(read) => format!(
            "robots.txt answered at {}, {early} of {} pages before it",
            seconds(read),
            pages.len()
        ),
    };
    if read.is_none() && pages.is_empty() {
        return PromiseCheck::new(PROMISE, Outcome::Unseen, counted);
    }
    PromiseCheck::of(PROMISE, early == 0, counted)
}

/// No request arrives for a path that starts with one of `disallowed`.
#[must_use]
pub fn nothing_disallowed(log: &[Entry], disallowed: &[&str]) -> PromiseCheck {
    const PROMISE: &str = "nothing disallowed";
    let broken: Vec<&str> = log
        .iter()
        .filter(|e| !e.is_robots_txt())
        .filter(|e| disallowed.iter().any(|path| e.path().starts_with(path)))
        .map(|e| e.target.as_str())
        .collect();
    let mut counted = format!(
        "{} of {} requests under {}",
        broken.len(),
        log.len(),
        disallowed.join(", ")
    );
    if let Some(first) = broken.first() {
        counted += &format!(", the first for {first}");
    }
    if log.is_empty() || disallowed.is_empty() {
        return PromiseCheck::new(PROMISE, Outcome::Unseen, counted);
    }
    PromiseCheck::of(PROMISE, broken.is_empty(), counted)
}

/// From the start and from the end of each exchange, the next request is at least `delay` away. robots.txt counts as one.
///
/// It holds for a client with one permit.
#[must_use]
pub fn smallest_delay(log: &[Entry], delay: Duration) -> PromiseCheck {
    const PROMISE: &str = "smallest delay";
    let smallest = log
        .windows(2)
        .map(|pair| {
            let end = pair[0].ended.unwrap_or(Duration::MAX);
            pair[1].at.saturating_sub(end)
        })
        .min();
    let Some(smallest) = smallest else {
        return PromiseCheck::new(PROMISE, Outcome::Unseen, "fewer than two requests");
    };
    let counted = format!(
        "{} between an answer's end and the next of {} requests, at least {} asked",
        seconds(smallest),
        log.len(),
        seconds(delay)
    );
    PromiseCheck::of(PROMISE, smallest >= delay, counted)
}

/// Two requests start at least `delay` apart, for a client with several permits whose requests are on their way for up to
/// `travel`: the first may arrive that much later than it left.
#[must_use]
pub fn smallest_delay_of_starts(log: &[Entry], delay: Duration, travel: Duration) -> PromiseCheck {
    const PROMISE: &str = "smallest delay";
    let Some(smallest) = smallest_distance(log.iter()) else {
        return PromiseCheck::new(PROMISE, Outcome::Unseen, "fewer than two requests");
    };
    let counted = format!(
        "{} between two of {} arrivals, at least {} asked, up to {} on their way",
        seconds(smallest),
        log.len(),
        seconds(delay),
        seconds(travel)
    );
    PromiseCheck::of(PROMISE, smallest + travel >= delay, counted)
}

/// After a 429 or 503 with Retry-After nothing arrives before its time is over, but what was on its way, for up to
/// `travel`, when the client could not know yet.
#[must_use]
pub fn pause_kept(log: &[Entry], travel: Duration) -> PromiseCheck {
    const PROMISE: &str = "pause kept";
    let mut pauses = Vec::new();
    let mut kept = true;
    for entry in log {
        let Some((from, to)) = entry.pause() else {
            continue;
        };
        let known = from + travel;
        let inside = log.iter().filter(|e| known <= e.at && e.at < to).count();
        kept &= inside == 0;
        let next = log.iter().map(|e| e.at).find(|&at| at >= known);
        let next = next.map_or_else(
            || "nothing after it".to_owned(),
            |at| format!("the next request after {}", seconds(at - from)),
        );
        pauses.push(format!(
            "{} asked at {} for {}, {inside} requests inside, {next}",
            entry.status.map_or(0, |s| s.as_u16()),
            seconds(from),
            seconds(to - from)
        ));
    }
    if pauses.is_empty() {
        return PromiseCheck::new(PROMISE, Outcome::Unseen, "no answer asked for a pause");
    }
    PromiseCheck::of(PROMISE, kept, pauses.join("; "))
}

/// Among the requests that arrive after the first pause, the smallest delay is larger than it was before: by a quarter at
/// least, which no jitter explains.
#[must_use]
pub fn slower_afterwards(log: &[Entry]) -> PromiseCheck {
    const PROMISE: &str = "slower afterwards";
    let Some((from, to)) = log.iter().find_map(Entry::pause) else {
        return PromiseCheck::new(PROMISE, Outcome::Unseen, "no answer asked for a pause");
    };
    let before = smallest_distance(log.iter().filter(|e| e.at < from));
    let after = smallest_distance(log.iter().filter(|e| e.at >= to));
    let (Some(before), Some(after)) = (before, after) else {
        let counted = "fewer than two requests before or after the pause";
        return PromiseCheck::new(PROMISE, Outcome::Unseen, counted);
    };
    let counted = format!(
        "smallest distance {} before the pause, {} after it",
        seconds(before),
        seconds(after)
    );
    PromiseCheck::of(PROMISE, after * 4 >= before * 5, counted)
}

/// What the first run got with a validator costs the second one nothing, or a conditional request that is answered 304.
#[must_use]
pub fn second_run_conditional(log: &[Entry]) -> PromiseCheck {
    const PROMISE: &str = "second run conditional";
    let mut known = BTreeSet::new();
    for entry in log.iter().filter(|e| e.run == 1) {
        let full = entry.status.is_some_and(|s| s == 200);
        let valid = [ETAG, LAST_MODIFIED];
        if full && valid.iter().any(|name| entry.answer.contains_key(name)) {
            known.insert(entry.target.as_str());
        }
    }
    let second: Vec<&Entry> = log
        .iter()
        .filter(|e| e.run > 1 && known.contains(e.target.as_str()))
        .collect();
    let anew: Vec<&str> = second
        .iter()
        .filter(|e| !e.is_conditional() || e.status.is_none_or(|s| s != 304))
        .map(|e| e.target.as_str())
        .collect();
    let asked: BTreeSet<&str> = second.iter().map(|e| e.target.as_str()).collect();
    let mut counted = format!(
        "of {} URLs {} cost a request that was answered 304, {} none",
        known.len(),
        second.len() - anew.len(),
        known.len() - asked.len()
    );
    if let Some(first) = anew.first() {
        counted += &format!(", {} were read anew, the first {first}", anew.len());
    }
    if known.is_empty() || log.iter().all(|e| e.run == 1) {
        return PromiseCheck::new(PROMISE, Outcome::Unseen, "no second run");
    }
    PromiseCheck::of(PROMISE, anew.is_empty(), counted)
}

/// How many exchanges the site had open at the same time at most.
#[must_use]
pub fn most_at_once(log: &[Entry]) -> usize {
    log.iter()
        .map(|one| {
            let open = |e: &&Entry| e.at <= one.at && e.ended.is_none_or(|ended| ended > one.at);
            log.iter().filter(open).count()
        })
        .max()
        .unwrap_or_default()
}

fn smallest_distance<'a>(log: impl Iterator<Item = &'a Entry>) -> Option<Duration> {
    let times: Vec<Duration> = log.map(|e| e.at).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).min()
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use http::{StatusCode, header};

    use super::super::{Expected, Promises};
    use super::*;

    const NAME: &str = "Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)";

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A named request at `millis` that was answered `status` within 10 ms.
    fn entry(millis: u64, target: &str, status: u16) -> Entry {
        let mut entry = Entry::new(at(millis), target);
        entry
            .headers
            .insert(header::USER_AGENT, NAME.parse().unwrap());
        entry.status = Some(StatusCode::from_u16(status).unwrap());
        entry.answered = Some(at(millis + 5));
        entry.ended = Some(at(millis + 10));
        entry
    }

    fn with(mut entry: Entry, name: header::HeaderName, value: &str) -> Entry {
        entry.answer.insert(name, value.parse().unwrap());
        entry
    }

    fn asked_with(mut entry: Entry, name: header::HeaderName, value: &str) -> Entry {
        entry.headers.insert(name, value.parse().unwrap());
        entry
    }

    fn second(mut entry: Entry) -> Entry {
        entry.run = 2;
        entry
    }

    /// A log that keeps every promise: delay 0.5 s, a pause of 2 s, twice the delay afterwards, and a second run.
    fn polite() -> Vec<Entry> {
        let busy = with(entry(1_100, "/b", 429), header::RETRY_AFTER, "2");
        let again = asked_with(entry(5_300, "/", 304), header::IF_NONE_MATCH, "\"a\"");
        vec![
            entry(0, "/robots.txt", 200),
            with(entry(550, "/", 200), header::ETAG, "\"a\""),
            busy,
            entry(3_200, "/b", 200),
            with(entry(4_250, "/c", 200), header::LAST_MODIFIED, "x"),
            second(again),
        ]
    }

    fn expected() -> Expected<'static> {
        Expected {
            token: "ExampleBot",
            disallowed: &["/private/"],
            delay: at(500),
            travel: Duration::ZERO,
        }
    }

    /// The promises that break when `change` is done to a polite log.
    fn broken(change: impl FnOnce(&mut Vec<Entry>)) -> Vec<&'static str> {
        let mut log = polite();
        change(&mut log);
        let promises = Promises::check(&log, &expected());
        let broken = |f: &&PromiseCheck| f.outcome == Outcome::Broken;
        assert_eq!(
            promises.any_broken(),
            promises.checks().iter().any(|f| broken(&f))
        );
        let checks = promises.checks().iter();
        checks.filter(broken).map(|f| f.promise).collect()
    }

    #[test]
    fn a_polite_log_keeps_all_of_them() {
        let promises = Promises::check(&polite(), &expected());
        for check in promises.checks() {
            check.expect_kept();
        }
        assert_eq!(promises.checks().len(), 7);
        let text = promises.to_string();
        for counted in [
            "6 of 6 requests as",
            "0 of 5 pages before it",
            "0.540 s between",
            "2.000 s, 0 requests inside, the next request after 2.095 s",
            "0.550 s before the pause, 1.050 s after it",
            "of 2 URLs 1 cost a request that was answered 304, 1 none",
        ] {
            assert!(text.contains(counted), "{counted}\n{text}");
        }
    }

    #[test]
    fn nothing_counts_as_nothing() {
        for check in Promises::check(&[], &expected()).checks() {
            assert_eq!(check.outcome, Outcome::Unseen, "{check}");
        }
    }

    #[test]
    fn named_breaks_without_the_token_the_link_or_constancy() {
        let rename = |name: &'static str| {
            move |log: &mut Vec<Entry>| {
                for entry in log {
                    let name = name.parse().unwrap();
                    entry.headers.insert(header::USER_AGENT, name);
                }
            }
        };
        assert_eq!(broken(rename("Other/1 (https://x.example/)")), ["named"]);
        assert_eq!(
            broken(rename("AnExampleBot/1 (https://x.example/)")),
            ["named"]
        );
        assert_eq!(broken(rename("ExampleBot/0.1")), ["named"]);
        let once = |log: &mut Vec<Entry>| {
            log[4].headers.remove(header::USER_AGENT);
        };
        assert_eq!(broken(once), ["named"]);
    }

    #[test]
    fn robots_first_breaks_when_a_page_comes_before_its_end() {
        assert_eq!(
            broken(|log| log[0].ended = Some(at(560))),
            ["robots first", "smallest delay"]
        );
        assert_eq!(broken(|log| drop(log.remove(0))), ["robots first"]);
    }

    #[test]
    fn nothing_disallowed_breaks_with_one_request() {
        let visit = |log: &mut Vec<Entry>| log[4].target = "/private/x".to_owned();
        assert!(broken(visit).contains(&"nothing disallowed"));
    }

    #[test]
    fn smallest_delay_breaks_by_a_millisecond_from_the_end() {
        assert_eq!(
            broken(|log| log[0].ended = Some(at(51))),
            ["smallest delay"]
        );
        assert_eq!(broken(|log| log[3].ended = None), ["smallest delay"]);
    }

    #[test]
    fn pause_kept_breaks_with_an_arrival_inside_it() {
        assert_eq!(broken(|log| log[3].at = at(3_104)), ["pause kept"]);
        assert_eq!(broken(|log| log[3].at = at(3_105)), [""; 0]);
    }

    #[test]
    fn several_permits_have_requests_on_their_way() {
        let judge = |arrivals: [u64; 4]| {
            let [a, b, c, d] = arrivals;
            let busy = with(entry(b, "/b", 429), header::RETRY_AFTER, "2");
            let log = [
                entry(a, "/a", 200),
                busy,
                entry(c, "/c", 200),
                entry(d, "/d", 200),
            ];
            let travel = at(50);
            let delay = smallest_delay_of_starts(&log, at(500), travel).outcome;
            (delay, pause_kept(&log, travel).outcome)
        };
        let (kept, broken) = (Outcome::Kept, Outcome::Broken);
        assert_eq!(judge([0, 450, 2_455, 2_905]), (kept, kept));
        assert_eq!(judge([0, 449, 2_454, 2_904]), (broken, kept));
        assert_eq!(judge([0, 950, 1_400, 1_850]), (kept, broken));
        // It left before the 429 can have been read.
        assert_eq!(judge([0, 500, 554, 2_510]), (broken, kept));
    }

    #[test]
    fn slower_afterwards_breaks_at_the_old_rate() {
        assert_eq!(broken(|log| log[4].at = at(3_887)), ["slower afterwards"]);
        assert_eq!(broken(|log| log[4].at = at(3_888)), [""; 0]);
    }

    #[test]
    fn second_run_conditional_breaks_with_a_full_copy() {
        let promise = ["second run conditional"];
        let full = |log: &mut Vec<Entry>| log[5].status = Some(StatusCode::OK);
        assert_eq!(broken(full), promise);
        let unconditional = |log: &mut Vec<Entry>| {
            log[5].headers.remove(header::IF_NONE_MATCH);
        };
        assert_eq!(broken(unconditional), promise);
    }

    #[test]
    fn exchanges_at_once_are_counted() {
        let mut log = polite();
        assert_eq!(most_at_once(&log), 1);
        log[1].ended = Some(at(3_300));
        assert_eq!(most_at_once(&log), 2);
        log[2].ended = None;
        assert_eq!(most_at_once(&log), 3);
    }
}
