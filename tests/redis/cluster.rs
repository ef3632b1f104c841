//! A Cluster of three nodes: all buckets are served, and one node that dies and comes back takes nothing from the others.

use std::time::{Duration, Instant};

use bytes::Bytes;
use etiquette_core::decide::host::{HostPolicy, StartOptions};
use etiquette_core::decide::robots_txt::StoredOutcome;
use etiquette_core::store::host::{AcquireRequest, Acquired, HostStore, LeaseId, LocalView};
use etiquette_core::store::{ResponseKey, ResponseStore, RobotsStore};
use tower_etiquette_redis::{Builder, RedisStore};

use crate::server::Server;
use crate::stores::{copy, head, key, listening};

const LEASE: Duration = Duration::from_millis(400);

/// Three nodes that share the slots and know each other.
async fn cluster(more: &[&str]) -> Option<[Server; 3]> {
    let mut options = vec![
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "1000",
        "--cluster-require-full-coverage",
        "no",
    ];
    options.extend(more);
    let nodes = [
        Server::start(&options)?,
        Server::start(&options)?,
        Server::start(&options)?,
    ];
    for (n, node) in nodes.iter().enumerate() {
        let (from, to) = (n * 16_384 / 3, (n + 1) * 16_384 / 3 - 1);
        let mut behind = node.connection();
        let _: () = redis::cmd("CLUSTER")
            .arg(&["ADDSLOTSRANGE", &from.to_string(), &to.to_string()])
            .query(&mut behind)
            .unwrap();
        let _: () = redis::cmd("CLUSTER")
            .arg(&["MEET", "127.0.0.1", &nodes[0].port().to_string()])
            .query(&mut behind)
            .unwrap();
    }
    for node in &nodes {
        until(Duration::from_secs(30), "the nodes meet", || {
            let info: String = redis::cmd("CLUSTER")
                .arg("INFO")
                .query(&mut node.connection())
                .unwrap();
            info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384")
        })
        .await;
    }
    Some(nodes)
}

async fn until(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn builder(nodes: &[Server; 3]) -> Builder {
    RedisStore::builder(nodes[0].url())
        .cluster([nodes[1].url(), nodes[2].url()])
        .timeout(Duration::from_secs(1))
        .lease(LEASE)
}

async fn acquire(store: &RedisStore, seen: LocalView<'_>) -> Option<Acquired> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let lease = LeaseId(NEXT.fetch_add(1, Ordering::Relaxed));
    store
        .acquire(seen, AcquireRequest::new(lease, StartOptions::pace()))
        .await
        .ok()
}

fn granted(answer: &Option<Acquired>) -> bool {
    matches!(answer, Some(Acquired::Granted(_)))
}

/// The hosts whose state is on a node.
fn hosts_on(node: &Server) -> Vec<String> {
    let names: Vec<String> = redis::cmd("KEYS")
        .arg("*:h:*")
        .query(&mut node.connection())
        .unwrap();
    names
        .iter()
        .filter_map(|name| name.rsplit(':').next())
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn a_cluster_of_three_nodes_serves_all_buckets() {
    let Some(nodes) = cluster(&[]).await else {
        return;
    };
    let (one, two) = (
        builder(&nodes).connect().await.unwrap(),
        builder(&nodes).connect().await.unwrap(),
    );
    tokio::time::sleep(LEASE + Duration::from_millis(50)).await;
    let policy = HostPolicy::new().min_delay(Duration::from_secs(60));
    for n in 0..64 {
        let host = format!("h{n}.example");
        let seen = LocalView::new(&host, &policy);
        let answer = acquire(&one, seen).await;
        assert!(granted(&answer), "{host}: {answer:?}");
        let answer = acquire(&two, seen).await;
        assert!(
            matches!(answer, Some(Acquired::Wait(..))),
            "{host}: {answer:?}"
        );
    }
    for node in &nodes {
        assert!(!hosts_on(node).is_empty(), "each node has its share");
    }
    let bytes = Bytes::from_static(b"user-agent: *\ndisallow: /");
    let rules = copy(StoredOutcome::Rules(Some(bytes)));
    one.save(&key(), rules.clone()).await.unwrap();
    assert_eq!(two.load(&key()).await.unwrap(), Some(rules));
    let url = ResponseKey::of(&"https://site.example/a".parse().unwrap()).unwrap();
    let body = Bytes::from(vec![7; 600_000]);
    one.put(&url, head("\"a\"", None), body.clone(), &[])
        .await
        .unwrap();
    let variants = two.get(&url).await.unwrap();
    assert_eq!(two.body(&url, &variants[0].head).await.unwrap(), Some(body));
}

/// The node that comes back is one that forgot everything, and one that has its data still but may have missed what
/// happened meanwhile.
#[tokio::test]
async fn a_node_that_dies_and_comes_back_is_used_again_and_nothing_starts_sooner() {
    for kept in ["no", "yes"] {
        let Some(mut nodes) = cluster(&["--appendonly", kept]).await else {
            return;
        };
        let (store, heard) = listening(builder(&nodes));
        let policy = HostPolicy::new().min_delay(Duration::ZERO);
        // Every host gets its permit in the server's memory, and gives none back.
        for n in 0..32 {
            let host = format!("h{n}.example");
            let seen = LocalView::new(&host, &policy);
            let end = Instant::now() + Duration::from_secs(10);
            while !granted(&acquire(&store, seen).await) {
                assert!(Instant::now() < end, "{host}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let (lost, others) = (
            hosts_on(&nodes[0]),
            [hosts_on(&nodes[1]), hosts_on(&nodes[2])].concat(),
        );
        assert!(lost.len() > 1 && !others.is_empty());
        let (lost, paused) = (&lost[0], &lost[1]);
        nodes[0].kill();
        let killed = Instant::now();
        let pause = Duration::from_secs(6);

        assert!(!granted(
            &acquire(&store, LocalView::new(lost, &policy)).await
        ));
        // The others' permits come back within their lease, and then they go on.
        for host in &others {
            let seen = LocalView::new(host, &policy);
            let end = Instant::now() + Duration::from_secs(5);
            while !granted(&acquire(&store, seen).await) {
                assert!(Instant::now() < end, "{host} has a node that lives");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let away = Duration::from_secs(2);
        while killed.elapsed() < away {
            let answer = acquire(&store, LocalView::new(lost, &policy)).await;
            assert!(!granted(&answer), "its node is down");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        nodes[0].launch();
        let back = Instant::now();
        let mut first = None;
        let end = back + Duration::from_secs(20);
        while first.is_none() {
            assert!(
                Instant::now() < end,
                "not used again, kept {kept}: {heard:?}"
            );
            let asked = Instant::now();
            // What a process knows of a pause it tells, and the server learns it again.
            let mut known = LocalView::new(paused, &policy);
            known.pause = (killed + pause).saturating_duration_since(asked);
            if granted(&acquire(&store, known).await) {
                assert!(Instant::now() >= killed + pause, "within a known pause");
            }
            if granted(&acquire(&store, LocalView::new(lost, &policy)).await) {
                first = Some(back.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let first = first.unwrap();
        // `launch` returns when the port is open; the process is a little older than that.
        assert!(
            first + Duration::from_millis(100) >= LEASE,
            "{first:?} after its return, kept {kept}"
        );
        println!("used again {first:?} after the node's return, kept {kept}");
        // It was told a pause, if it could be asked in time.
        let other = builder(&nodes).build().unwrap();
        let answer = acquire(&other, LocalView::new(paused, &policy)).await;
        if killed.elapsed() + Duration::from_millis(200) < pause {
            assert!(
                matches!(answer, Some(Acquired::Wait(..))),
                "another process hears of the pause: {answer:?}"
            );
        }
    }
}
