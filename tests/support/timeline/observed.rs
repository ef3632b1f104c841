//! What a timeline came to: requests as the origin saw them, and what their callers got.

use std::collections::HashMap;

use serde_json::Value;

use super::scenario::normal;
use crate::site::Entry;

/// What was observed of a timeline. Times are seconds from its start.
#[derive(Debug)]
#[non_exhaustive]
pub struct Observed {
    /// The requests at the origin, in the order of arrival.
    pub requests: Vec<ObservedRequest>,
    /// The answers that were read to their end.
    pub completed: Vec<Completion>,
    /// The requests that a layer refused.
    pub refusals: Vec<RefusedRequest>,
    /// The backoff level of a host at an instant at which the row asks for it.
    pub backoff_levels: HashMap<(String, u64), u32>,
    /// How many hosts were kept in memory at such an instant.
    pub tracked: HashMap<u64, usize>,
    /// How hosts are grouped, as the row has it.
    pub group: String,
    /// Host names and their addresses, as the row has them.
    pub dns: Value,
    /// Callers that had not come to an end.
    pub unfinished: usize,
    /// Requests in flight and waiting by the hosts' own count, once all callers had come to an end.
    pub left: (u64, u64),
    /// Whether processes shared its hosts.
    pub over_a_store: bool,
}

/// One request as the origin saw it. Times are seconds from the start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObservedRequest {
    /// When it arrived.
    pub at: f64,
    /// The host, in lower case and without the scheme's default port.
    pub host: String,
    /// The path.
    pub path: String,
    /// The User-Agent.
    pub user_agent: Option<String>,
    /// The submission that it belongs to; none for a request that a layer made.
    pub group: Option<Group>,
    /// When the head of its answer was handed over.
    pub head: Option<f64>,
    /// The status of its answer, or zero.
    pub status: u16,
    /// When its body ended or was dropped.
    pub end: Option<f64>,
}

/// Which submission a request belongs to; travels with it as an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The submission's name in the row.
    pub id: Option<String>,
    /// Counts the requests of a timeline in the order of their submission.
    pub serial: usize,
    /// How many redirects it has followed.
    pub hop: usize,
}

/// An answer that was read to its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Completion {
    /// The host.
    pub host: String,
    /// When.
    pub at: f64,
}

/// A request that a layer refused.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RefusedRequest {
    /// The host.
    pub host: String,
    /// The kind of the refusal.
    pub kind: &'static str,
    /// When.
    pub at: f64,
    /// When to come back.
    pub retry_at: Option<f64>,
}

impl ObservedRequest {
    /// The same request in words of a timeline, as a part of `group`.
    pub(super) fn of(entry: &Entry, group: Option<Group>) -> Self {
        let scheme = entry.uri.scheme_str().unwrap_or("http");
        let user_agent = entry.headers.get(http::header::USER_AGENT);
        Self {
            at: entry.at.as_secs_f64(),
            host: normal(&entry.host, scheme),
            path: entry.path().to_owned(),
            user_agent: user_agent.map(|name| String::from_utf8_lossy(name.as_bytes()).into()),
            group,
            head: entry.answered.map(|at| at.as_secs_f64()),
            status: entry.status.map_or(0, |status| status.as_u16()),
            end: entry.ended.map(|at| at.as_secs_f64()),
        }
    }
}
