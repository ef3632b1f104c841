//! The connection: one for all calls, bounded in time, failing at once while the server is known to fail.
//!
//! Of a Cluster each bucket of keys fails by itself, so that one node that is down takes nothing from the others. The
//! client under it connects again to a node that comes back, and learns of moved slots from redirections; where that does
//! not help, the whole is connected anew every few seconds.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etiquette_core::store::StoreFailed;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value,
};
use tokio::time::Instant;

use crate::event::{Cause, Event, OnEvent};

/// A server that fails is tried again after so long.
const TRY_AGAIN: Duration = Duration::from_millis(500);

pub(crate) enum Server {
    Single(Box<Client>),
    Cluster(Box<ClusterClient>),
}

/// The connections to a Cluster are made anew no oftener than this.
const ANEW_AFTER: Duration = Duration::from_secs(5);
/// A bucket that failed so long ago, and is not asked about any more, says nothing about the present.
const STALE: Duration = Duration::from_secs(60);
/// In place of the run id where several servers answer: the script looks itself.
const LOOK_THERE: &str = "?";

/// A connection to a server, or to all of a Cluster.
#[derive(Clone)]
pub(crate) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A connection and the run id of its server: empty where that is not known, `?` where it is for the script to find out.
#[derive(Clone)]
pub(crate) struct Connected {
    pub(crate) connection: Connection,
    pub(crate) run: Arc<str>,
    number: u64,
    made: Instant,
}

/// One connection for all calls, which fail at once while the server is known to fail.
pub(crate) struct SharedConnection {
    server: Server,
    timeout: Duration,
    on_event: Option<OnEvent>,
    connecting: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connected: Option<Connected>,
    /// How many connections were made.
    made: u64,
    /// What fails: everything of a single server under one number, of a Cluster each bucket.
    failing: BTreeMap<u64, ServerDown>,
    /// Since when anything does.
    since: Option<Instant>,
}

/// Something fails.
#[derive(Clone, Copy)]
struct ServerDown {
    cause: Cause,
    /// When it is tried again.
    again: Instant,
}

/// The server is known to fail and was not called.
#[derive(Debug)]
struct Failing;

impl std::fmt::Display for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it failed a moment ago")
    }
}

impl std::error::Error for Failing {}

impl SharedConnection {
    pub(crate) fn new(server: Server, timeout: Duration, on_event: Option<OnEvent>) -> Self {
        Self {
            server,
            timeout,
            on_event,
            connecting: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// A call about a bucket of keys, within the time of a call.
    pub(crate) async fn call<T, F>(
        &self,
        doing: &'static str,
        bucket: u64,
        call: impl FnOnce(Connected) -> F,
    ) -> Result<T, StoreFailed>
    where
        F: Future<Output = RedisResult<T>>,
    {
        self.call_within(doing, bucket, self.timeout, call).await
    }

    /// A call about a bucket of keys, within `timeout`.
    pub(crate) async fn call_within<T, F>(
        &self,
        doing: &'static str,
        bucket: u64,
        timeout: Duration,
        call: impl FnOnce(Connected) -> F,
    ) -> Result<T, StoreFailed>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let part = match &self.server {
            Server::Single(_) => 0,
            Server::Cluster(_) => bucket,
        };
        if let Some(down) = self.state().failing.get_mut(&part) {
            let now = Instant::now();
            if now < down.again {
                return Err(StoreFailed::new(doing, Failing));
            }
            // One tries, the others go on failing until that is decided.
            down.again = now + self.timeout.max(TRY_AGAIN);
        }
        let mut number = None;
        let called = tokio::time::timeout(timeout, async {
            let connected = self.connected().await?;
            number = Some(connected.number);
            call(connected).await
        });
        match called.await {
            Ok(Ok(value)) => {
                self.succeeded(part);
                Ok(value)
            }
            Ok(Err(error)) => {
                let cause = Cause::of(&error);
                self.failed(part, number, cause, error.to_string());
                Err(StoreFailed::new(doing, error))
            }
            Err(elapsed) => {
                self.failed(part, number, Cause::Slow, elapsed.to_string());
                Err(StoreFailed::new(doing, elapsed))
            }
        }
    }

    /// The server forgot what it knew.
    pub(crate) fn forgot(&self) {
        self.tell(&Event::Forgot);
    }

    async fn connected(&self) -> Result<Connected, RedisError> {
        if let Some(connected) = self.state().connected.clone() {
            return Ok(connected);
        }
        let _first = self.connecting.lock().await;
        if let Some(connected) = self.state().connected.clone() {
            return Ok(connected);
        }
        let (connection, run) = self.connect().await?;
        let mut state = self.state();
        state.made += 1;
        let connected = Connected {
            connection,
            run,
            number: state.made,
            made: Instant::now(),
        };
        state.connected = Some(connected.clone());
        Ok(connected)
    }

    async fn connect(&self) -> Result<(Connection, Arc<str>), RedisError> {
        match &self.server {
            Server::Single(client) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(self.timeout))
                    .set_response_timeout(None);
                let mut connection = client
                    .get_multiplexed_async_connection_with_config(&config)
                    .await?;
                // Where INFO is not allowed, a restart goes unseen unless it empties the server.
                let info: RedisResult<String> = redis::cmd("INFO")
                    .arg("server")
                    .query_async(&mut connection)
                    .await;
                let run = info.as_deref().unwrap_or_default();
                let run = run
                    .lines()
                    .find_map(|line| line.strip_prefix("run_id:"))
                    .unwrap_or_default();
                Ok((Connection::Single(connection), run.trim().into()))
            }
            Server::Cluster(client) => {
                let connection = client.get_async_connection().await?;
                Ok((Connection::Cluster(connection), LOOK_THERE.into()))
            }
        }
    }

    fn succeeded(&self, part: u64) {
        let since = {
            let mut state = self.state();
            if state.failing.is_empty() {
                return;
            }
            state.failing.remove(&part);
            let now = Instant::now();
            state.failing.retain(|_, down| now < down.again + STALE);
            state
                .failing
                .is_empty()
                .then(|| state.since.take())
                .flatten()
        };
        if let Some(since) = since {
            let after = since.elapsed();
            self.tell(&Event::Recovered { after });
        }
    }

    fn failed(&self, part: u64, number: Option<u64>, cause: Cause, detail: String) {
        let now = Instant::now();
        let report = {
            let mut state = self.state();
            // A connection that broke is never used again; one that is slow may have to be given up too, because what
            // was sent on it gets its responses in order. The connections to a Cluster mend themselves, as a rule.
            let given_up = state.connected.as_ref().is_some_and(|connected| {
                Some(connected.number) == number
                    && match &self.server {
                        Server::Single(_) => matches!(cause, Cause::Unreachable | Cause::Slow),
                        Server::Cluster(_) => {
                            !matches!(cause, Cause::Full | Cause::Denied | Cause::WrongType)
                                && now >= connected.made + ANEW_AFTER
                        }
                    }
            });
            if given_up {
                state.connected = None;
            }
            // One wrong key says nothing about the server.
            if cause == Cause::WrongType {
                true
            } else {
                let known = state.failing.values().any(|known| known.cause == cause);
                let again = now + TRY_AGAIN;
                state.failing.insert(part, ServerDown { cause, again });
                state.since.get_or_insert(now);
                !known
            }
        };
        if report {
            self.tell(&Event::Failing { cause, detail });
        }
    }

    fn tell(&self, event: &Event) {
        if let Some(hear) = &self.on_event {
            hear(event);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(cmd),
            Self::Cluster(connection) => connection.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        cmd: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(connection) => connection.req_packed_commands(cmd, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(cmd, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}
