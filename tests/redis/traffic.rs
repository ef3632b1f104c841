//! What goes to the server, and how often: nothing of a user fetch but its host, no credentials or queries in any key, and
//! no more questions than processes.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use etiquette_tests::client::{fetch, get, identity_builder};
use etiquette_tests::site::{Answer, Site, SiteService};
use http::{Request, Response};
use http_body_util::Empty;
use tower::{Layer, ServiceExt};
use tower_etiquette::client::Client;
use tower_etiquette::conditional_cache::{ConditionalCache, ConditionalCacheLayer};
use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts, Purpose, Session};
use tower_etiquette_redis::RedisStore;

use crate::server::Server;

const LEASE: Duration = Duration::from_millis(200);

/// All commands that the server runs, from scripts too.
struct Monitor(BufReader<TcpStream>);

impl Monitor {
    fn new(server: &Server) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut begins = String::new();
        lines.read_line(&mut begins).unwrap();
        assert_eq!(begins.trim(), "+OK");
        Self(lines)
    }

    /// The commands until now.
    fn commands(mut self, server: &Server) -> Vec<String> {
        let end = "that was all";
        let _: String = redis::cmd("ECHO")
            .arg(end)
            .query(&mut server.connection())
            .unwrap();
        let mut commands = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the server ended");
            if line.contains(end) {
                return commands;
            }
            commands.push(line);
        }
    }
}

async fn store(server: &Server) -> RedisStore {
    let store = RedisStore::builder(server.url()).lease(LEASE);
    let store = store.connect().await.unwrap();
    tokio::time::sleep(LEASE).await;
    store
}

/// A client that shares everything that can be shared.
fn client(store: &RedisStore) -> Client {
    let identity = identity_builder().user_token("Example-User").build();
    let policy = HostPolicy::new()
        .min_delay(Duration::from_millis(20))
        .latency_factor(0);
    let hosts = Hosts::builder()
        .policy(policy)
        .store(Arc::new(store.clone()))
        .build();
    let rules = Arc::new(store.clone());
    Client::builder(identity.unwrap())
        .hosts(hosts)
        .store(store.clone())
        .stack(|stack| stack.robots(|robots| robots.store(rules)))
        .build()
        .unwrap()
}

async fn site() -> Site {
    let page = || {
        Answer::html("the-body")
            .header("cache-control", "max-age=600")
            .etag("\"the-tag\"")
            .last_modified("Sun, 01 Nov 2020 08:00:00 GMT")
    };
    Site::builder()
        .robots("User-agent: *\nDisallow: /nothing\n")
        .at("/the-path", page())
        .at("/moved", Answer::redirect("/the-path?the-query"))
        .start()
        .await
        .unwrap()
}

async fn read(response: Response<tower_etiquette::client::ResponseBody>) -> Bytes {
    assert_eq!(response.status(), 200);
    response.into_body().bytes(1 << 20).await.unwrap()
}

#[tokio::test]
async fn of_a_user_fetch_the_server_learns_the_host_and_its_rules_only() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let (site, store) = (site().await, store(&server).await);
    let monitor = Monitor::new(&server);
    let client = client(&store);
    let session = Session::new();
    for path in ["/the-path?the-query", "/moved", "/the-path?the-query"] {
        let url = site.url(path);
        let grant = session.grant(&url.parse().unwrap()).unwrap();
        let response = client.get_for(&url, Purpose::UserFetch(grant)).await;
        assert_eq!(read(response.unwrap()).await, "the-body");
    }
    let pages = site.log().pages();
    assert_eq!(pages.len(), 2, "the second and third came from the session");
    // What is written off the request's path is written by then.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let commands = monitor.commands(&server);
    for command in &commands {
        for word in ["the-", "moved", "max-age", "01 Nov 2020", ":b:"] {
            assert!(!command.contains(word), "{word} was sent: {command}");
        }
        // It may read what a crawl stored, which is looked for by a hash of the URL.
        let writes = !command.contains("\"HGETALL\"");
        assert!(!(writes && command.contains(":v:")), "written: {command}");
    }
    let host = site.address().ip().to_string();
    let about = |kind: &str| {
        let key = format!(":{kind}:{host}\"");
        commands.iter().filter(|line| line.contains(&key)).count()
    };
    assert!(about("h") >= 2, "its state is kept by the host's name");
    let rules = format!(":r:ExampleBot:http://{host}:{}\"", site.port());
    let of_rules = |verb: &str| {
        let by = |line: &&String| line.contains(&rules) && line.contains(verb);
        commands.iter().filter(by).count()
    };
    let (read, written) = (of_rules("\"HMGET\""), of_rules("\"HMSET\""));
    assert!(read >= 1 && written >= 1, "{rules}: {commands:#?}");
}

#[tokio::test]
async fn no_key_holds_credentials_or_a_query() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let (site, store) = (site().await, store(&server).await);
    let client = client(&store);
    let authority = format!("the-user:the-password@{}", site.address());
    for url in [
        format!("http://{authority}/the-path?the-query"),
        format!("http://{authority}/the-path"),
        site.url("/the-path?the-query=2"),
    ] {
        read(client.get(&url).await.unwrap()).await;
    }
    assert_eq!(site.log().pages().len(), 3);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut behind = server.connection();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut behind).unwrap();
    let of = |kind: &str| keys.iter().filter(|key| key.contains(kind)).count();
    assert_eq!((of("}:v:"), of("}:r:"), of("}:h:")), (3, 1, 1), "{keys:?}");
    for key in &keys {
        assert!(!key.contains("the-") && !key.contains('?'), "{key}");
    }
    // Nor does any value hold a password.
    for key in keys.iter().filter(|key| key.contains("}:v:")) {
        let fields: Vec<Vec<u8>> = redis::cmd("HGETALL").arg(key).query(&mut behind).unwrap();
        for field in fields {
            assert!(!String::from_utf8_lossy(&field).contains("the-password"));
        }
    }
}

/// How many scripts the server has run.
fn scripts(server: &Server) -> u64 {
    let stats: String = redis::cmd("INFO")
        .arg("commandstats")
        .query(&mut server.connection())
        .unwrap();
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let calls = line.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// Four processes, ten requests waiting in each: one of each process asks when the pause may be over, and nobody before.
#[tokio::test]
async fn a_pause_costs_each_process_one_question_at_its_end() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let pause = Duration::from_secs(2);
    let store = store(&server).await;
    let site = Site::builder()
        .at("/busy", Answer::retry_after(429, pause.as_secs()))
        .otherwise(Answer::status(200))
        .in_process();
    let policy = HostPolicy::new()
        .min_delay(Duration::from_secs(1))
        .latency_factor(0)
        .jitter(0.0, 0.0);
    let client = || {
        let hosts = Hosts::builder()
            .policy(policy.clone())
            .store(Arc::new(store.clone()))
            .build();
        HostBudgetLayer::new(hosts).layer(site.clone())
    };
    let get = |path: &str| get(&format!("http://site.example{path}"));
    let processes: Vec<_> = (0..4).map(|_| client()).collect();
    let busy = processes[0].clone().oneshot(get("/busy")).await.unwrap();
    assert_eq!(busy.status(), 429);
    drop(busy);
    let paused = Instant::now();
    let mut waiting = tokio::task::JoinSet::new();
    for process in &processes {
        for _ in 0..10 {
            waiting.spawn(process.clone().oneshot(get("/")));
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = scripts(&server);
    while paused.elapsed() + Duration::from_millis(200) < pause {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(scripts(&server), before, "a known pause costs no question");
    let first = waiting.join_next().await.unwrap().unwrap().unwrap();
    assert!(paused.elapsed() + Duration::from_millis(20) >= pause);
    drop(first);
    tokio::time::sleep(Duration::from_millis(300)).await;
    // One question of each process and one report of an answer; whoever comes within the time that an answer takes asks again.
    let asked = scripts(&server) - before;
    assert!((2..=4 * 2 + 1).contains(&asked), "{asked} questions");
    println!("{asked} questions of 4 processes with 10 waiting in each");
}

/// A response that one process stored is a hit for another one, is validated for all, and is gone for all.
#[tokio::test]
async fn responses_are_found_validated_and_outdated_across_processes() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let page = |cache_control: &str| {
        let page = Answer::status(200).header("cache-control", cache_control);
        page.etag("\"a\"").body("page")
    };
    let site = Site::builder()
        .at("/fresh", page("max-age=600"))
        .otherwise(page("no-cache"))
        .in_process();
    let store = || RedisStore::builder(server.url()).build().unwrap();
    let process = || {
        ConditionalCacheLayer::new()
            .store(store())
            .layer(site.clone())
    };
    let (one, two) = (process(), process());
    let ask = async |process: &_, method: &str, path: &str| {
        let url = format!("http://site.example{path}");
        let request = Request::builder().method(method).uri(url);
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let process: &ConditionalCache<SiteService, RedisStore> = process;
        let page = fetch(process.clone(), request).await.unwrap();
        let seen = site.log().entries();
        let conditional = seen.iter().filter(|entry| entry.is_conditional()).count();
        (page.body, (seen.len(), conditional))
    };
    let page = Bytes::from_static(b"page");
    assert_eq!(ask(&one, "GET", "/fresh").await, (page.clone(), (1, 0)));
    assert_eq!(ask(&two, "GET", "/fresh").await, (page.clone(), (1, 0)));
    assert_eq!(ask(&one, "GET", "/stale").await, (page.clone(), (2, 0)));
    assert_eq!(ask(&two, "GET", "/stale").await, (page.clone(), (3, 1)));
    ask(&two, "POST", "/fresh").await;
    let after = ask(&one, "GET", "/fresh").await;
    assert_eq!(after, (page, (5, 1)), "it is gone for the first one too");
}
