//! robots.txt and responses on a server, and a server that cannot be used.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::Origin;
use etiquette_core::decide::cache_policy::{Extent, InitialAge, Selecting, StoredResponse};
use etiquette_core::decide::host::{HostPolicy, StartOptions};
use etiquette_core::decide::robots_txt::{StoredCopy, StoredOutcome, StoredRobots, Validators};
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostReport, HostStore, LeaseId, LeaseUpdate, LocalView,
};
use etiquette_core::store::{Claim, ResponseKey, ResponseStore, RobotsKey, RobotsStore};
use http::{HeaderMap, StatusCode, Version};
use tower_etiquette_redis::{Builder, Cause, Event, RedisStore};

use crate::server::Server;

const LEASE: Duration = Duration::from_millis(200);

pub(crate) fn key() -> RobotsKey {
    RobotsKey {
        origin: Origin::of(&"https://site.example".parse().unwrap()).unwrap(),
        token: "ExampleBot".parse().unwrap(),
    }
}

pub(crate) fn copy(outcome: StoredOutcome) -> StoredRobots {
    let second = |n| SystemTime::UNIX_EPOCH + Duration::from_secs(n);
    StoredRobots {
        copy: Some(StoredCopy {
            outcome,
            validators: Validators {
                etag: Some("\"one\"".parse().unwrap()),
                last_modified: None,
            },
            confirmed: second(1_796_076_000),
            life: Duration::from_secs(3_600),
        }),
        failure: None,
    }
}

#[tokio::test]
async fn one_process_reads_robots_txt_for_all() {
    let Some(server) = Server::given_or_started() else {
        return;
    };
    let store = |_| {
        RedisStore::builder(server.url())
            .namespace(server.namespace())
            .robots_lease(LEASE)
            .build()
    };
    let (one, two) = (store(1).unwrap(), store(2).unwrap());
    let key = key();
    assert_eq!(one.load(&key).await.unwrap(), None);
    assert_eq!(one.claim(&key).await.unwrap(), Claim::Granted);
    assert!(matches!(two.claim(&key).await.unwrap(), Claim::Taken(_)));

    let bytes = Bytes::from_static(b"user-agent: *\r\ndisallow: /\xff\0");
    let rules = copy(StoredOutcome::Rules(Some(bytes.clone())));
    one.save(&key, rules.clone()).await.unwrap();
    assert_eq!(two.load(&key).await.unwrap(), Some(rules.clone()));
    assert_eq!(
        two.claim(&key).await.unwrap(),
        Claim::Granted,
        "the fetch is over"
    );

    // Confirmed: the bytes stay. Gone: they go.
    two.save(&key, copy(StoredOutcome::Rules(None)))
        .await
        .unwrap();
    assert_eq!(one.load(&key).await.unwrap(), Some(rules));
    two.save(&key, copy(StoredOutcome::Unavailable))
        .await
        .unwrap();
    assert_eq!(
        one.load(&key).await.unwrap(),
        Some(copy(StoredOutcome::Unavailable))
    );

    // A reader that died gives way.
    assert_eq!(one.claim(&key).await.unwrap(), Claim::Granted);
    tokio::time::sleep(LEASE + Duration::from_millis(50)).await;
    assert_eq!(two.claim(&key).await.unwrap(), Claim::Granted);
}

pub(crate) fn head(etag: &str, language: Option<&str>) -> StoredResponse {
    let mut headers = HeaderMap::new();
    headers.insert("etag", etag.parse().unwrap());
    headers.append("x-two", "1".parse().unwrap());
    headers.append("x-two", "2".parse().unwrap());
    let value = language.map(|language| language.as_bytes().into());
    let selecting = Selecting::from_fields([("accept-language".into(), value)]);
    let initial_age = InitialAge {
        response_time: SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_076_000),
        age: Duration::from_secs(3),
    };
    StoredResponse::restore(
        StatusCode::OK,
        Version::HTTP_2,
        headers,
        selecting,
        Extent::Whole,
        initial_age,
    )
}

#[tokio::test]
async fn responses_come_back_whole_on_another_node() {
    let Some(server) = Server::given_or_started() else {
        return;
    };
    let store = || {
        let builder = RedisStore::builder(server.url()).namespace(server.namespace());
        builder.build().unwrap()
    };
    let (one, two) = (store(), store());
    let key = ResponseKey::of(&"https://site.example/a?secret".parse().unwrap()).unwrap();
    let large: Bytes = (0..1_500_000_u32)
        .map(|n| (n % 251) as u8)
        .collect::<Vec<_>>()
        .into();
    let (german, english) = (head("\"de\"", Some("de")), head("\"en\"", Some("en")));
    one.put(&key, german.clone(), large.clone(), &[])
        .await
        .unwrap();
    one.put(&key, english.clone(), Bytes::from_static(b"small"), &[])
        .await
        .unwrap();

    let variants = two.get(&key).await.unwrap();
    assert_eq!(variants.len(), 2);
    let found = variants
        .iter()
        .find(|v| v.head.selecting() == german.selecting())
        .unwrap();
    assert_eq!(found.head.headers(), german.headers());
    assert_eq!(found.head.initial_age(), german.initial_age());
    assert_eq!(found.head.version(), Version::HTTP_2);
    assert_eq!(found.length, large.len() as u64);
    assert_eq!(
        two.body(&key, &found.head).await.unwrap(),
        Some(large.clone())
    );
    assert_eq!(two.body(&key, &english).await.unwrap().unwrap(), "small");

    // A new head leaves the body; one that was replaced or removed is not brought back.
    let newer = head("\"de2\"", Some("de"));
    two.update(&key, german.selecting(), newer.clone())
        .await
        .unwrap();
    assert_eq!(one.body(&key, &newer).await.unwrap(), Some(large));
    assert_eq!(
        one.body(&key, &german).await.unwrap(),
        None,
        "of another response"
    );
    one.remove(&key, Some(german.selecting())).await.unwrap();
    two.update(&key, german.selecting(), newer).await.unwrap();
    assert_eq!(two.get(&key).await.unwrap().len(), 1);
    one.remove(&key, None).await.unwrap();
    assert!(two.get(&key).await.unwrap().is_empty());

    let left = server.keys(server.namespace());
    assert_eq!(left, Vec::<String>::new(), "no body is left behind");
}

#[tokio::test]
async fn keys_hold_no_queries_and_all_of_them_vanish() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let store = RedisStore::builder(server.url())
        .lease(LEASE)
        .connect()
        .await
        .unwrap();
    let key = ResponseKey::of(&"https://u.example/p?secret".parse().unwrap()).unwrap();
    store
        .put(&key, head("\"a\"", None), vec![1; 20_000].into(), &[])
        .await
        .unwrap();
    store
        .save(&self::key(), copy(StoredOutcome::Unavailable))
        .await
        .unwrap();
    tokio::time::sleep(LEASE + Duration::from_millis(50)).await;
    let policy = HostPolicy::new();
    let seen = LocalView::new("site.example", &policy);
    let granted = store
        .acquire(seen, AcquireRequest::new(LeaseId(1), StartOptions::pace()))
        .await
        .unwrap();
    assert!(matches!(granted, Acquired::Granted(_)), "{granted:?}");

    let mut behind = server.connection();
    let all: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut behind).unwrap();
    assert!(all.len() > 5, "{all:?}");
    for name in all {
        assert!(name.starts_with("etiquette:1:{"), "{name}");
        assert!(!name.contains("secret"), "{name}");
        let life: i64 = redis::cmd("PTTL").arg(&name).query(&mut behind).unwrap();
        assert!(life > 0, "{name} would stay for ever");
    }
}

/// What a store told its operator.
pub(crate) type Heard = Arc<Mutex<Vec<Event>>>;

/// A store, and what it tells its operator.
pub(crate) fn listening(builder: Builder) -> (RedisStore, Heard) {
    let heard = Heard::default();
    let hear = Arc::clone(&heard);
    let builder = builder.on_event(move |event| hear.lock().unwrap().push(event.clone()));
    (builder.build().unwrap(), heard)
}

fn brief(server: &Server) -> Builder {
    RedisStore::builder(server.url())
        .lease(LEASE)
        .timeout(Duration::from_millis(300))
}

pub(crate) fn causes(heard: &Mutex<Vec<Event>>) -> Vec<Cause> {
    let causes = heard.lock().unwrap();
    causes
        .iter()
        .filter_map(|event| match event {
            Event::Failing { cause, .. } => Some(*cause),
            _ => None,
        })
        .collect()
}

/// Asks until the server grants it, for at most 10 s.
pub(crate) async fn until_granted(store: &RedisStore, host: &str, first: u64) {
    let policy = HostPolicy::new().min_delay(Duration::ZERO);
    for number in 0..200 {
        let ask = AcquireRequest::new(LeaseId(first + number), StartOptions::pace());
        if let Ok(Acquired::Granted(_)) = store.acquire(LocalView::new(host, &policy), ask).await {
            let report = HostReport::new(Some(LeaseUpdate::Ended(ask.lease)), None);
            store
                .report(LocalView::new(host, &policy), report)
                .await
                .unwrap();
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never granted");
}

#[tokio::test]
async fn a_server_that_fails_is_named_and_used_again_when_it_is_back() {
    let Some(mut server) = Server::start(&[]) else {
        return;
    };
    let (store, heard) = listening(brief(&server));
    until_granted(&store, "a.example", 0).await;
    let policy = HostPolicy::new();
    let ask = |n: u64| AcquireRequest::new(LeaseId(1_000 + n), StartOptions::pace());
    let seen = LocalView::new("a.example", &policy);

    server.signal("STOP");
    let begin = std::time::Instant::now();
    assert!(store.acquire(seen, ask(1)).await.is_err());
    assert!(
        begin.elapsed() < Duration::from_secs(3),
        "a call has an end"
    );
    server.signal("CONT");
    assert_eq!(causes(&heard), [Cause::Slow]);
    until_granted(&store, "a.example", 2_000).await;

    server.kill();
    assert!(store.acquire(seen, ask(2)).await.is_err());
    server.launch();
    until_granted(&store, "a.example", 3_000).await;
    assert_eq!(causes(&heard).last(), Some(&Cause::Unreachable));

    let mut behind = server.connection();
    let _: () = redis::cmd("SCRIPT")
        .arg("FLUSH")
        .query(&mut behind)
        .unwrap();
    until_granted(&store, "a.example", 4_000).await;

    let wait = store.acquire(seen, ask(3)).await.unwrap();
    let Acquired::Wait(..) = wait else {
        panic!("the delay is one second: {wait:?}");
    };
    let _: () = redis::cmd("CONFIG")
        .arg("SET")
        .arg("maxmemory")
        .arg("1")
        .query(&mut behind)
        .unwrap();
    assert!(store.acquire(seen, ask(4)).await.is_err());
    assert_eq!(causes(&heard).last(), Some(&Cause::Full));
    let _: () = redis::cmd("CONFIG")
        .arg("SET")
        .arg("maxmemory")
        .arg("0")
        .query(&mut behind)
        .unwrap();
    until_granted(&store, "a.example", 5_000).await;

    let names: Vec<String> = redis::cmd("KEYS")
        .arg("*:h:a.example")
        .query(&mut behind)
        .unwrap();
    let _: () = redis::cmd("SET")
        .arg(&names[0])
        .arg("mine")
        .query(&mut behind)
        .unwrap();
    assert!(store.acquire(seen, ask(5)).await.is_err());
    assert_eq!(causes(&heard).last(), Some(&Cause::WrongType));
    until_granted(&store, "b.example", 6_000).await;
    let _: () = redis::cmd("DEL").arg(&names[0]).query(&mut behind).unwrap();
    until_granted(&store, "a.example", 7_000).await;

    let _: () = redis::cmd("ACL")
        .arg(&["SETUSER", "default", "-evalsha"])
        .query(&mut behind)
        .unwrap();
    assert!(store.acquire(seen, ask(6)).await.is_err());
    assert_eq!(causes(&heard).last(), Some(&Cause::Denied));
    let _: () = redis::cmd("ACL")
        .arg(&["SETUSER", "default", "+evalsha"])
        .query(&mut behind)
        .unwrap();
    until_granted(&store, "a.example", 8_000).await;
    assert!(matches!(
        heard.lock().unwrap().last(),
        Some(Event::Recovered { .. })
    ));
}

#[tokio::test]
async fn an_empty_server_grants_nothing_for_one_lease() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let (store, _) = listening(brief(&server));
    let policy = HostPolicy::new().min_delay(Duration::ZERO);
    let seen = LocalView::new("a.example", &policy);
    until_granted(&store, "a.example", 0).await;
    let mut behind = server.connection();
    let _: () = redis::cmd("FLUSHALL").query(&mut behind).unwrap();
    let begin = std::time::Instant::now();
    let first = store
        .acquire(
            seen,
            AcquireRequest::new(LeaseId(100), StartOptions::pace()),
        )
        .await
        .unwrap();
    assert!(
        matches!(first, Acquired::Wait(wait, _) if wait > LEASE / 2),
        "{first:?}"
    );
    until_granted(&store, "a.example", 200).await;
    assert!(begin.elapsed() >= LEASE);
}

/// A store whose scripts take the time, in microseconds, from a clock of the test.
async fn by_its_own_clock(server: &Server) -> (RedisStore, Arc<AtomicI64>) {
    let clock = Arc::new(AtomicI64::new(1_796_076_000_000_000));
    let store = RedisStore::builder(server.url())
        .script_clock(Arc::clone(&clock))
        .connect()
        .await
        .unwrap();
    (store, clock)
}

#[tokio::test]
async fn a_server_clock_that_is_set_back_does_not_lengthen_waits() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let (store, clock) = by_its_own_clock(&server).await;
    let policy = HostPolicy::new();
    let seen = LocalView::new("a.example", &policy);
    clock.fetch_add(3_600_000_000, Ordering::SeqCst);
    let ask = |n: u64| AcquireRequest::new(LeaseId(n), StartOptions::pace());
    assert!(matches!(
        store.acquire(seen, ask(1)).await.unwrap(),
        Acquired::Granted(_)
    ));
    store
        .report(
            seen,
            HostReport::new(Some(LeaseUpdate::Ended(LeaseId(1))), None),
        )
        .await
        .unwrap();
    clock.fetch_sub(1_800_000_000, Ordering::SeqCst);
    let answer = store.acquire(seen, ask(2)).await.unwrap();
    let second = Duration::from_secs(1);
    assert!(
        matches!(answer, Acquired::Wait(wait, _) if wait == second),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_server_clock_that_is_set_forward_ends_no_pause_that_a_process_knows() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let (store, clock) = by_its_own_clock(&server).await;
    let policy = HostPolicy::new();
    clock.fetch_add(3_600_000_000, Ordering::SeqCst);
    let mut knows = LocalView::new("a.example", &policy);
    knows.pause = Duration::from_secs(600);
    let ask = |n: u64| AcquireRequest::new(LeaseId(n), StartOptions::pace());
    store.acquire(knows, ask(1)).await.unwrap();
    clock.fetch_add(3_600_000_000, Ordering::SeqCst);
    // It brings back what the server takes for past, and from then on it holds for those who do not know it.
    for (n, seen) in [(2, knows), (3, LocalView::new("a.example", &policy))] {
        let answer = store.acquire(seen, ask(n)).await.unwrap();
        assert!(
            matches!(answer, Acquired::Wait(wait, _) if wait == knows.pause),
            "{answer:?}"
        );
    }
}

/// A server that was restarted with what it had on disk may have missed permits that were taken since.
#[tokio::test]
async fn a_server_that_comes_back_with_its_data_grants_nothing_for_one_lease() {
    let Some(mut server) = Server::start(&["--appendonly", "yes"]) else {
        return;
    };
    let (store, _) = listening(brief(&server));
    until_granted(&store, "a.example", 0).await;
    server.kill();
    server.launch();
    let back = std::time::Instant::now();
    let mut behind = server.connection();
    let kept = loop {
        match redis::cmd("DBSIZE").query::<usize>(&mut behind) {
            Ok(kept) => break kept,
            Err(loading) => assert!(back.elapsed() < LEASE * 20, "{loading}"),
        }
    };
    assert!(kept > 0, "its data is there");
    until_granted(&store, "a.example", 1_000).await;
    assert!(back.elapsed() + Duration::from_millis(50) >= LEASE);
}
