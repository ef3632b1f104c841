//! The origin of a timeline: the first rule of the row that fits a request answers it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::observed::{Group, ObservedRequest};
use super::scenario::{Scenario, normal};
use crate::site::{Answer, Arrival, Script, Site, SiteService};

/// The rules of a row.
struct Rules {
    wall: SystemTime,
    rules: Vec<Value>,
    latency: f64,
    body_time: f64,
    /// How many requests each host had.
    arrived: Mutex<HashMap<String, u64>>,
}

/// The origin, and what it saw.
pub(super) struct Origin {
    pub(super) site: SiteService,
    /// The group of each request, in the order of arrival.
    groups: Arc<Mutex<Vec<Option<Group>>>>,
}

impl Origin {
    /// The origin of `scenario`, whose clock shows `wall` at the start.
    ///
    /// # Errors
    /// When the row does not say how long it takes to answer.
    pub(super) fn new(scenario: &Scenario, wall: SystemTime) -> Result<Self, String> {
        let rules = Rules {
            wall,
            rules: scenario.origin.clone(),
            latency: scenario.required("latency")?,
            body_time: scenario.required("body_time")?,
            arrived: Mutex::default(),
        };
        let groups: Arc<Mutex<Vec<Option<Group>>>> = Arc::default();
        let script = {
            let groups = Arc::clone(&groups);
            Script::call(move |arrival| {
                let group = arrival.extensions.get().cloned();
                groups.lock().expect("nothing panics under it").push(group);
                rules.answer(arrival)
            })
        };
        let site = Site::builder().otherwise(script).in_process();
        Ok(Self { site, groups })
    }

    /// What arrived so far.
    pub(super) fn requests(&self) -> Vec<ObservedRequest> {
        let groups = self.groups.lock().expect("nothing panics under it");
        let entries = self.site.log().entries();
        let requests = entries.iter().zip(groups.iter().cloned());
        requests
            .map(|(entry, group)| ObservedRequest::of(entry, group))
            .collect()
    }
}

impl Rules {
    fn answer(&self, arrival: &Arrival) -> Answer {
        let scheme = arrival.uri.scheme_str().unwrap_or("http");
        let host = normal(&arrival.host, scheme);
        let number = {
            let mut arrived = self.arrived.lock().expect("nothing panics under it");
            let number = arrived.entry(host.clone()).or_default();
            *number += 1;
            *number
        };
        let fits = |rule: &&Value| fits(rule, arrival, &host, number);
        match self.rules.iter().find(fits) {
            Some(rule) => self.by(rule, arrival.at),
            None if arrival.is_robots_txt() => {
                self.by(&serde_json::json!({"status": 404}), arrival.at)
            }
            None => self.by(&Value::Null, arrival.at),
        }
    }

    /// What `rule` answers to a request that came at `at`.
    fn by(&self, rule: &Value, at: Duration) -> Answer {
        if rule["panic"] == true {
            return Answer::panic();
        }
        let latency = rule["latency"].as_f64().unwrap_or(self.latency);
        let latency = Duration::from_secs_f64(latency);
        if rule["error"].is_string() {
            return Answer::hang_up().after(latency);
        }
        let status = rule["status"].as_u64().unwrap_or(200);
        let mut answer = Answer::status(u16::try_from(status).unwrap_or_default())
            .after(latency)
            .literally();
        for (name, value) in rule["headers"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            let Some(ahead) = value.strip_prefix("@+") else {
                answer = answer.header(name, value);
                continue;
            };
            // A date by the origin's own clock, rounded up, beside its present, which a date rounds down.
            let present = self.wall + at + latency;
            let ahead: f64 = ahead.parse().expect("a number of seconds");
            let up = Duration::from_nanos(999_999_999);
            let date = present + Duration::from_secs_f64(ahead) + up;
            answer = answer
                .header("date", &httpdate::fmt_http_date(present))
                .header(name, &httpdate::fmt_http_date(date));
        }
        let text = rule["body"].as_str().unwrap_or_default().to_owned();
        let error_at = rule["body_error_at"].as_f64();
        let body_time = rule["body_time"].as_f64().unwrap_or(self.body_time);
        let end = Duration::from_secs_f64(error_at.unwrap_or(body_time));
        let answer = answer.body(text).ends_after(end);
        match error_at {
            Some(_) => answer.breaks_off(),
            None => answer,
        }
    }
}

fn fits(rule: &Value, arrival: &Arrival, host: &str, number: u64) -> bool {
    let conditional = arrival.headers.contains_key(http::header::IF_NONE_MATCH)
        || arrival
            .headers
            .contains_key(http::header::IF_MODIFIED_SINCE);
    let numbers = rule["arrival"].as_array();
    let when = rule["when"].as_array();
    let (from, to) = (rule["when"][0].as_f64(), rule["when"][1].as_f64());
    let at = arrival.at.as_secs_f64();
    rule["host"]
        .as_str()
        .is_none_or(|rule| normal(rule, "http") == host)
        && rule["path"]
            .as_str()
            .is_none_or(|path| path == arrival.path())
        && rule["conditional"]
            .as_bool()
            .is_none_or(|c| c == conditional)
        && numbers.is_none_or(|all| all.iter().any(|n| n.as_u64() == Some(number)))
        && when.is_none_or(|_| from.is_some_and(|from| from <= at) && to.is_some_and(|to| at < to))
}
