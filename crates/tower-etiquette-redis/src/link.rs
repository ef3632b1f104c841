//! The connection: one for all calls, bounded in time, failing at once while the server is known to fail.

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

use crate::builder::OnEvent;
use crate::event::{Cause, Event};

/// A server that fails is tried again after so long.
const TRY_AGAIN: Duration = Duration::from_millis(500);

pub(crate) enum Server {
    Single(Box<Client>),
    Cluster(Box<ClusterClient>),
}

/// A connection to a server, or to all of a Cluster.
#[derive(Clone)]
pub(crate) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A connection and the run of the server that it leads to, empty where it leads to several.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) connection: Connection,
    pub(crate) run: Arc<str>,
    number: u64,
}

pub(crate) struct Link {
    server: Server,
    timeout: Duration,
    on_event: Option<OnEvent>,
    connecting: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    line: Option<Line>,
    lines: u64,
    /// Since when it fails, why, and when it is tried again.
    failing: Option<(Instant, Cause, Instant)>,
}

/// The server is known to fail and was not asked.
#[derive(Debug)]
struct Failing;

impl std::fmt::Display for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it failed a moment ago")
    }
}

impl std::error::Error for Failing {}

impl Link {
    pub(crate) fn new(server: Server, timeout: Duration, on_event: Option<OnEvent>) -> Self {
        Self {
            server,
            timeout,
            on_event,
            connecting: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Asks the server, within the time of a call.
    pub(crate) async fn ask<T, F>(
        &self,
        doing: &'static str,
        ask: impl FnOnce(Line) -> F,
    ) -> Result<T, StoreFailed>
    where
        F: Future<Output = RedisResult<T>>,
    {
        self.ask_within(doing, self.timeout, ask).await
    }

    /// Asks the server, within `timeout`.
    pub(crate) async fn ask_within<T, F>(
        &self,
        doing: &'static str,
        timeout: Duration,
        ask: impl FnOnce(Line) -> F,
    ) -> Result<T, StoreFailed>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let failing = self.state().failing;
        if let Some((since, cause, again)) = failing {
            let now = Instant::now();
            if now < again {
                return Err(StoreFailed::new(doing, Failing));
            }
            // One tries, the others go on failing until that is decided.
            self.state().failing = Some((since, cause, now + self.timeout.max(TRY_AGAIN)));
        }
        let mut number = None;
        let asked = tokio::time::timeout(timeout, async {
            let line = self.line().await?;
            number = Some(line.number);
            ask(line).await
        });
        match asked.await {
            Ok(Ok(value)) => {
                self.succeeded();
                Ok(value)
            }
            Ok(Err(error)) => {
                let cause = Cause::of(&error);
                self.failed(number, cause, error.to_string());
                Err(StoreFailed::new(doing, error))
            }
            Err(elapsed) => {
                self.failed(number, Cause::Slow, elapsed.to_string());
                Err(StoreFailed::new(doing, elapsed))
            }
        }
    }

    /// The server forgot what it knew.
    pub(crate) fn forgot(&self) {
        self.tell(&Event::Forgot);
    }

    async fn line(&self) -> Result<Line, RedisError> {
        if let Some(line) = self.state().line.clone() {
            return Ok(line);
        }
        let _first = self.connecting.lock().await;
        if let Some(line) = self.state().line.clone() {
            return Ok(line);
        }
        let (connection, run) = self.connect().await?;
        let mut state = self.state();
        state.lines += 1;
        let line = Line {
            connection,
            run,
            number: state.lines,
        };
        state.line = Some(line.clone());
        Ok(line)
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
                Ok((Connection::Cluster(connection), "".into()))
            }
        }
    }

    fn succeeded(&self) {
        let failing = self.state().failing.take();
        if let Some((since, ..)) = failing {
            let after = since.elapsed();
            self.tell(&Event::Recovered { after });
        }
    }

    fn failed(&self, number: Option<u64>, cause: Cause, detail: String) {
        let now = Instant::now();
        let news = {
            let mut state = self.state();
            // A connection that broke is never used again; one that is slow may have to be given up too, because what
            // was sent on it is answered in order.
            let broken = matches!(cause, Cause::Unreachable | Cause::Slow);
            if broken && number.is_some() && state.line.as_ref().map(|line| line.number) == number {
                state.line = None;
            }
            // One wrong key says nothing about the server.
            if cause == Cause::WrongType {
                true
            } else {
                let known = state.failing;
                let since = known.map_or(now, |(since, ..)| since);
                state.failing = Some((since, cause, now + TRY_AGAIN));
                known.is_none_or(|(_, known, _)| known != cause)
            }
        };
        if news {
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
