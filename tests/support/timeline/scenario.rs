//! A timeline as the vector file describes it, in our words.

use serde_json::Value;

use crate::vectors::Kind::{Flag, List, Number, Object, Text};
use crate::vectors::{
    Kind, RowResult, in_our_words, list, number, only_keys, text, unknown, whole,
};

/// The vectors' words and ours. A row may use either.
const WORDS: &[(&str, &str)] = &[
    // Settings.
    ("cap", "max_in_flight"),
    ("min_gap", "min_delay"),
    ("queue_per_host", "queue_limit"),
    // Expectations.
    ("gap_not_shorter", "delay_not_shorter"),
    ("mean_gap_ratio", "mean_delay_ratio"),
    ("strikes", "backoff_level"),
    // Kinds of refusals.
    ("body_held", "unread_body"),
];

const ROW: &[(&str, Kind)] = &[
    ("id", Text),
    ("config", Object),
    ("submit", List),
    ("origin", List),
    ("events", List),
    ("expect", List),
];

const CONFIG: &[(&str, Kind)] = &[
    ("auto_retry", Flag),
    ("body_time", Number),
    ("cache", Flag),
    ("client_wall_offset", Number),
    ("default_pause", Number),
    ("default_pause_503", Number),
    ("dns", Object),
    ("follow_redirects", Flag),
    ("group", Text),
    // Drawn as the arrangement says, not as the row does.
    ("jitter", List),
    ("latency", Number),
    ("latency_scaling", Flag),
    ("layers", List),
    ("lease", Number),
    ("max_crawl_delay", Number),
    ("max_hosts", Number),
    ("max_in_flight", Number),
    ("max_wait", Number),
    ("max_wait_user", Number),
    ("min_delay", Number),
    ("node_wall_offset", Object),
    ("nodes", Number),
    ("override", Object),
    ("queue_limit", Number),
    // The fields of the draft are not read: a row has to hold all the same.
    ("ratelimit_fields", Flag),
    ("robots", Flag),
    ("store", Text),
];

const SUBMIT: &[(&str, Kind)] = &[
    ("drop_body_at", Number),
    ("every", Number),
    ("hold_body", Flag),
    ("hold_response", Flag),
    ("host", Text),
    ("id", Text),
    ("method", Text),
    ("mode", Text),
    ("n", Number),
    ("node", Number),
    ("path", Text),
    ("ready_only", Flag),
    ("scheme", Text),
    ("stack", Number),
    ("t", Number),
    ("until", Number),
];

const ORIGIN: &[(&str, Kind)] = &[
    ("arrival", List),
    ("body", Text),
    ("body_error_at", Number),
    ("body_time", Number),
    ("conditional", Flag),
    ("error", Text),
    ("headers", Object),
    ("host", Text),
    ("latency", Number),
    ("panic", Flag),
    ("path", Text),
    ("status", Number),
    ("when", List),
];

const EVENT: &[(&str, Kind)] = &[
    ("cancel", Text),
    ("kill_node", Number),
    ("store", Text),
    ("t", Number),
    ("wall_jump", Number),
];

/// A row, with the file's defaults filled in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Scenario {
    /// Its name.
    pub id: String,
    /// The settings.
    pub config: Value,
    /// What is asked for.
    pub submit: Vec<Submit>,
    /// The rules by which the origin answers.
    pub origin: Vec<Value>,
    /// What happens on the way.
    pub events: Vec<Value>,
    /// What has to hold.
    pub expect: Vec<Value>,
}

/// A group of requests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Submit {
    /// When they are handed to the stack.
    pub at: f64,
    /// How many.
    pub n: u64,
    /// Their host.
    pub host: String,
    /// What else the row says about them.
    pub row: Value,
}

/// Whether the environment lets the timeline `id` be played: `ETIQUETTE_ROWS` may name the beginnings of those to play,
/// separated by commas.
#[must_use]
pub fn is_wanted(id: &str) -> bool {
    match std::env::var("ETIQUETTE_ROWS") {
        Ok(rows) => rows.split(',').any(|row| id.starts_with(row)),
        Err(_) => true,
    }
}

impl Scenario {
    /// Reads a row, for which `defaults` are the settings that it does not name.
    ///
    /// # Errors
    /// What of it cannot be read or is not known.
    pub fn read(row: &Value, defaults: &Value) -> Result<Self, String> {
        let row = in_our_words(row, WORDS);
        only_keys(&row, "the row", ROW)?;
        let mut config = in_our_words(defaults, WORDS);
        for (key, value) in row["config"].as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        check_config(&config)?;
        let all = |key: &str, known: &[(&str, Kind)]| -> Result<Vec<Value>, String> {
            let all = row[key].as_array().cloned().unwrap_or_default();
            all.iter().try_for_each(|one| only_keys(one, key, known))?;
            Ok(all)
        };
        let mut submit = Vec::new();
        for row in all("submit", SUBMIT)? {
            submit.extend(submissions(&row)?);
        }
        let origin = all("origin", ORIGIN)?;
        origin.iter().try_for_each(check_rule)?;
        let events = all("events", EVENT)?;
        events.iter().try_for_each(check_event)?;
        Ok(Self {
            id: text(&row, "id")?.into(),
            config,
            submit,
            origin,
            events,
            expect: list(&row, "expect")?.to_vec(),
        })
    }

    /// The same with those submissions only whose host is `label`.
    pub(super) fn only(&self, label: &str) -> Self {
        let mut alone = self.clone();
        alone
            .submit
            .retain(|submit| normal(&submit.host, "http") == label);
        alone
    }

    /// The setting at `key`, if it is a number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<f64> {
        self.config[key].as_f64()
    }

    /// The setting at `key`, which no row can do without.
    pub(super) fn required(&self, key: &str) -> Result<f64, String> {
        number(&self.config, key)
    }

    /// The setting at `key`, if it is a span of time that is not negative.
    pub(super) fn seconds(&self, key: &str) -> Result<std::time::Duration, String> {
        let seconds = self.required(key)?;
        std::time::Duration::try_from_secs_f64(seconds)
            .map_err(|why| unknown(format_args!("{key} of config is {seconds}: {why}")))
    }

    /// Whether the setting at `key` is on.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.config[key].as_bool().unwrap_or(false)
    }
}

fn check_config(config: &Value) -> RowResult {
    only_keys(config, "config", CONFIG)?;
    for (host, own) in config["override"].as_object().into_iter().flatten() {
        only_keys(
            own,
            &format!("override of {host}"),
            &[("min_delay", Number)],
        )?;
        number(own, "min_delay")?;
    }
    match config["group"].as_str() {
        None | Some("authority" | "host" | "ip" | "registrable_domain") => {}
        Some(other) => return Err(unknown(format_args!("the group {other:?}"))),
    }
    match config["store"].as_str() {
        None | Some("shared") => Ok(()),
        Some(other) => Err(unknown(format_args!("the store {other:?}"))),
    }
}

fn check_rule(rule: &Value) -> RowResult {
    match rule["error"].as_str() {
        None | Some("connect") => {}
        Some(other) => return Err(unknown(format_args!("the error {other:?} of an origin"))),
    }
    let when = &rule["when"];
    if when.is_array() && !(when[0].is_number() && when[1].is_number()) {
        return Err(unknown(format_args!("when is {when}")));
    }
    if rule["status"].is_number() {
        let status: u16 = whole(rule, "status")?;
        http::StatusCode::from_u16(status).map_err(|_| unknown(format_args!("status {status}")))?;
    }
    // A date ahead of the origin's clock is `@+` and a number of seconds.
    for (name, value) in rule["headers"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or("@+");
        let ahead = value.strip_prefix("@+");
        if ahead.is_some_and(|ahead| !ahead.parse().is_ok_and(|ahead: f64| ahead >= 0.0)) {
            return Err(unknown(format_args!("the header {name}: {value}")));
        }
    }
    Ok(())
}

fn check_event(event: &Value) -> RowResult {
    number(event, "t")?;
    let of = |key: &str| !event[key].is_null();
    let verbs = ["cancel", "kill_node", "store", "wall_jump"];
    let one = verbs.iter().filter(|verb| of(verb)).count() == 1;
    if one && (event["store"].is_null() || event["store"] == "down") {
        return Ok(());
    }
    Err(unknown(format_args!("the event {event}")))
}

/// One row may stand for many hosts and for portions that come again.
fn submissions(row: &Value) -> Result<Vec<Submit>, String> {
    let at = number(row, "t")?;
    let n = whole(row, "n")?;
    let host = text(row, "host")?;
    match row["mode"].as_str() {
        None | Some("user") => {}
        Some(other) => return Err(unknown(format_args!("the mode {other:?}"))),
    }
    let every = row["every"].as_f64();
    let one = |at: f64, host: String| Submit {
        at,
        n,
        host,
        row: row.clone(),
    };
    if let Some((head, rest)) = host.split_once('{') {
        let range = || {
            let (range, tail) = rest.split_once('}')?;
            let (from, to) = range.split_once("..")?;
            Some((from.parse().ok()?, to.parse().ok()?, tail))
        };
        let (from, to, tail): (u64, u64, _) =
            range().ok_or_else(|| unknown(format_args!("the host {host:?}")))?;
        let hosts = (from..=to).map(|i| {
            let after = every.unwrap_or(0.0) * (i - from) as f64;
            one(at + after, format!("{head}{i}{tail}"))
        });
        return Ok(hosts.collect());
    }
    let mut times = vec![at];
    if let (Some(every), Some(until)) = (every, row["until"].as_f64()) {
        let mut k = 1.0;
        while at + k * every <= until + 1e-9 {
            times.push(at + k * every);
            k += 1.0;
        }
    }
    Ok(times.into_iter().map(|at| one(at, host.into())).collect())
}

/// A host as the log names it: lower case, without the scheme's default port.
pub(super) fn normal(host: &str, scheme: &str) -> String {
    let host = host.to_ascii_lowercase();
    let port = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(port).unwrap_or(&host).to_owned()
}
