//! A timeline as the vector file describes it.

use serde_json::Value;

/// A row, with the file's defaults filled in.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) id: String,
    pub(crate) config: Value,
    pub(crate) submit: Vec<Submit>,
    pub(crate) origin: Vec<Value>,
    pub(crate) events: Vec<Value>,
    pub(crate) expect: Vec<Value>,
}

/// A group of requests.
#[derive(Clone)]
pub(crate) struct Submit {
    pub(crate) at: f64,
    pub(crate) n: u64,
    pub(crate) host: String,
    pub(crate) row: Value,
}

impl Scenario {
    pub(crate) fn read(row: &Value, defaults: &Value) -> Self {
        let mut config = defaults.clone();
        if let Some(own) = row["config"].as_object() {
            for (key, value) in own {
                config[key] = value.clone();
            }
        }
        let list = |key: &str| row[key].as_array().cloned().unwrap_or_default();
        Self {
            id: row["id"].as_str().expect("each row has an id").into(),
            config,
            submit: list("submit").iter().flat_map(submissions).collect(),
            origin: list("origin"),
            events: list("events"),
            expect: list("expect"),
        }
    }

    /// The same with those submissions only whose host is `label`.
    pub(crate) fn only(&self, label: &str) -> Self {
        let mut alone = self.clone();
        alone
            .submit
            .retain(|submit| normal(&submit.host, "http") == label);
        alone
    }

    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.config[key].as_f64()
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.config[key].as_bool().unwrap_or(false)
    }
}

/// One row may stand for many hosts and for portions that come again.
fn submissions(row: &Value) -> Vec<Submit> {
    let at = row["t"].as_f64().expect("a submission has a time");
    let n = row["n"].as_u64().expect("a submission has a number");
    let host = row["host"].as_str().expect("a submission has a host");
    let every = row["every"].as_f64();
    let one = |at: f64, host: String| Submit {
        at,
        n,
        host,
        row: row.clone(),
    };
    if let Some((head, rest)) = host.split_once('{') {
        let (range, tail) = rest.split_once('}').expect("a range is closed");
        let (from, to) = range.split_once("..").expect("a range has two ends");
        let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
        return (from..=to)
            .map(|i| {
                let after = every.unwrap_or(0.0) * (i - from) as f64;
                one(at + after, format!("{head}{i}{tail}"))
            })
            .collect();
    }
    let mut times = vec![at];
    if let (Some(every), Some(until)) = (every, row["until"].as_f64()) {
        let mut k = 1.0;
        while at + k * every <= until + 1e-9 {
            times.push(at + k * every);
            k += 1.0;
        }
    }
    times.into_iter().map(|at| one(at, host.into())).collect()
}

/// A host as the log names it: lower case, without the scheme's default port.
pub(crate) fn normal(host: &str, scheme: &str) -> String {
    let host = host.to_ascii_lowercase();
    let port = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(port).unwrap_or(&host).to_owned()
}
