//! A disk that takes nothing any more: played with a limit on the size of files, in a process of its own.

use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::Selecting;
use etiquette_core::store::ResponseStore;
use etiquette_core::store::journal::HostJournal;
use etiquette_tests::client::{fetch, get};
use etiquette_tests::folder::TempFolder;
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Site, SiteService};
use tower::ServiceExt;
use tower_etiquette::conditional_cache::ConditionalCacheLayer;
use tower_etiquette::disk::DiskStore;
use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts};
use tower_layer::Layer;

use crate::{head, key};

const FOLDER: &str = "ETIQUETTE_FULL_FOLDER";
/// Larger than any file may become.
const LARGE: usize = 64 << 20;

fn site(status: u16, length: usize) -> SiteService {
    let answer = Answer::retry_after(status, 3_600).etag("\"a\"");
    let answer = answer.body(vec![b'x'; length]);
    Site::builder().otherwise(answer).in_process()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
}

/// Runs in a process of its own, which [`a_full_disk_costs_no_request_and_no_pause`] starts.
#[test]
#[ignore = "the process that is started by another test"]
fn limited() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    paused::run(async {
        let errors: Arc<AtomicUsize> = Arc::default();
        let counting = Arc::clone(&errors);
        let store = DiskStore::open(folder).unwrap().on_error(move |_| {
            counting.fetch_add(1, Ordering::SeqCst);
        });
        let reported = || errors.swap(0, Ordering::SeqCst);
        // A body that does not fit.
        let client = ConditionalCacheLayer::new()
            .store(store.clone())
            .max_body(2 * LARGE)
            .layer(site(200, LARGE));
        let page = fetch(client, get("http://site.example/large"))
            .await
            .unwrap();
        assert_eq!(page.body.len(), LARGE);
        assert_eq!(reported(), 1);
        assert!(store.get(&key("large")).await.unwrap().is_empty());
        // Heads, until the database does not fit either.
        let filler = "x".repeat(200_000);
        let mut puts = 0;
        while errors.load(Ordering::SeqCst) == 0 {
            let head = head(&[("x-filler", &filler)], Selecting::default());
            let name = key(&puts.to_string());
            drop(store.put(&name, head, Bytes::new(), &[]).await);
            puts += 1;
            assert!(puts < 2_000, "the disk is never full");
        }
        reported();
        // A request goes on, from the cache and to the site.
        let client = ConditionalCacheLayer::new()
            .store(store.clone())
            .layer(site(200, 1_000));
        let page = fetch(client, get("http://site.example/page"))
            .await
            .unwrap();
        assert_eq!(page.body.len(), 1_000);
        assert!(reported() > 0);
        // A pause holds in memory, and that it could not be written is reported; the answer is handed on.
        let hosts = Hosts::builder()
            .policy(HostPolicy::new())
            .journal(Arc::new(store.clone()))
            .build();
        let client = HostBudgetLayer::new(hosts.clone()).layer(site(429, 0));
        let response = client
            .clone()
            .oneshot(get("http://paused.example/"))
            .await
            .unwrap();
        assert_eq!(response.status(), 429);
        assert!(reported() > 0);
        let refused = client
            .oneshot(get("http://paused.example/"))
            .await
            .unwrap_err();
        let refusal = tower_etiquette::Refusal::find(&*refused).unwrap();
        let left = refusal
            .retry_at()
            .unwrap()
            .duration_since(hosts.clock().now().wall);
        assert!(left.unwrap() > Duration::from_secs(3_500));
        say("@the end");
        // With room again it goes on by itself, after a while.
        let own = std::process::id().to_string();
        let lifted = Command::new("prlimit")
            .args(["--fsize=unlimited", "--pid", &own])
            .status();
        if !lifted.is_ok_and(|status| status.success()) {
            return say("@no prlimit");
        }
        tokio::time::advance(Duration::from_secs(10)).await;
        let plain = head(&[("etag", "\"a\"")], Selecting::default());
        let name = key("again");
        store.put(&name, plain, "again".into(), &[]).await.unwrap();
        let found = store.get(&name).await.unwrap();
        let body = store.body(&name, &found[0].head).await.unwrap();
        assert_eq!(body.unwrap(), "again");
        store.keep("later.example", None).await.unwrap();
        say("@again");
    });
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_costs_no_request_and_no_pause() {
    let folder = TempFolder::new();
    let store = DiskStore::open(folder.path()).unwrap();
    let plain = head(&[("etag", "\"a\"")], Selecting::default());
    store
        .put(&key("before"), plain, "before".into(), &[])
        .await
        .unwrap();
    drop(store);
    let length = std::fs::metadata(folder.join("etiquette.redb"))
        .unwrap()
        .len();
    // In blocks of 512 or 1,024 bytes, as the shell has it. The signal is ignored, so that the write fails.
    let limit = format!(
        "trap '' XFSZ; ulimit -S -f {}; exec \"$0\" \"$@\"",
        length / 512 + 64
    );
    let child = Command::new("sh")
        .args(["-c", &limit])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "full::limited",
            "--include-ignored",
            "--nocapture",
        ])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&child.stdout).into_owned();
    let errors = String::from_utf8_lossy(&child.stderr).into_owned();
    assert!(
        child.status.success() && out.contains("@the end"),
        "{out}\n{errors}"
    );
    assert!(
        out.contains("@again") || out.contains("@no prlimit"),
        "{out}\n{errors}"
    );
    // With room again nothing is corrupt, and what was there is there.
    let store = DiskStore::open(folder.path()).unwrap();
    let found = store.get(&key("before")).await.unwrap();
    let body = store.body(&key("before"), &found[0].head).await.unwrap();
    assert_eq!(body.unwrap(), "before");
    let paused: Vec<_> = store.records();
    assert!(paused.iter().all(|(_, record)| record.is_some()));
    if out.contains("@again") {
        // What could not be written went along with the next change.
        assert_eq!(paused[0].0, "paused.example");
    }
    let plain = head(&[], Selecting::default());
    store
        .put(&key("after"), plain, "after".into(), &[])
        .await
        .unwrap();
    assert_eq!(store.get(&key("after")).await.unwrap().len(), 1);
}
