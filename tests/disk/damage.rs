//! Whatever stands in the files of the folder: what was stored, or a miss.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::Origin;
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::decide::host::{
    HostPolicy, HostRecord, HostResponse, HostState, ResponseRecord, Signal,
};
use etiquette_core::decide::robots_txt::{StoredCopy, StoredOutcome, StoredRobots, Validators};
use etiquette_core::store::journal::HostJournal;
use etiquette_core::store::{ResponseStore, RobotsKey, RobotsStore};
use etiquette_tests::folder::TempFolder;
use etiquette_tests::random::Random;
use tower_etiquette::disk::{DiskError, DiskStore};

use crate::{bodies, head, key};

const RULES: &str = "User-agent: *\nDisallow: /private/\n";
const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];
const PAGES: u64 = 4;

fn body(page: u64) -> Bytes {
    vec![b'a' + page as u8; 100 + 900 * page as usize].into()
}

fn robots_key() -> RobotsKey {
    RobotsKey {
        origin: Origin::of(&"http://site.example".parse().unwrap()).unwrap(),
        token: "ExampleBot".parse().unwrap(),
    }
}

fn robots() -> StoredRobots {
    StoredRobots {
        copy: Some(StoredCopy {
            outcome: StoredOutcome::Rules(Some(Bytes::from_static(RULES.as_bytes()))),
            validators: Validators::default(),
            confirmed: SystemTime::UNIX_EPOCH + Duration::from_secs(1_784_550_000),
            life: Duration::from_secs(3_600),
        }),
        failure: None,
    }
}

fn paused() -> HostRecord {
    let now = etiquette_core::Now {
        monotonic: std::time::Instant::now(),
        wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_784_550_000),
    };
    let mut answer = HostResponse::failure();
    answer.signal = Signal::Throttled;
    let mut state = HostState::new();
    let received = ResponseRecord::new(now.monotonic, answer, true, 0.0);
    state.record_response(&HostPolicy::new(), now.monotonic, &received);
    state.to_record(now).unwrap()
}

async fn fill(folder: &Path) {
    let store = DiskStore::open(folder).unwrap();
    for page in 0..PAGES {
        let head = head(&[("x-page", &page.to_string())], Selecting::default());
        let name = key(&page.to_string());
        store.put(&name, head, body(page), &[]).await.unwrap();
    }
    store.save(&robots_key(), robots()).await.unwrap();
    for host in HOSTS {
        store.keep(host, Some(paused())).await.unwrap();
    }
}

/// What is found is right; how much was found.
async fn check(store: &DiskStore, case: u64) -> usize {
    let mut found = 0;
    for page in 0..PAGES {
        let name = key(&page.to_string());
        for variant in store.get(&name).await.unwrap_or_default() {
            assert_eq!(variant.head.headers()["x-page"], page.to_string(), "{case}");
            if let Ok(Some(bytes)) = store.body(&name, &variant.head).await {
                assert_eq!(bytes, body(page), "{case}");
                found += 1;
            }
        }
    }
    if let Ok(Some(known)) = store.load(&robots_key()).await {
        assert_eq!(known, robots(), "{case}");
        found += 1;
    }
    for (host, record) in store.records() {
        if let Some(record) = record {
            assert!(HOSTS.contains(&host.as_str()), "{case}: {host}");
            assert_eq!(record, paused(), "{case}");
            found += 1;
        }
    }
    found
}

#[tokio::test]
async fn random_bytes_in_the_database_are_a_miss() {
    let whole = TempFolder::new();
    fill(whole.path()).await;
    let file = whole.join("etiquette.redb");
    let bytes = std::fs::read(&file).unwrap();
    // Most of the file is empty: damage is done where something stands.
    let used: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let (mut some, mut all, mut reported) = (0, 0, 0);
    let hook = std::panic::take_hook();
    // The database's code panics over some bytes; that is caught and becomes an error.
    std::panic::set_hook(Box::new(|_| {}));
    for case in 0..60 {
        let folder = TempFolder::new();
        let copies = folder.join("bodies");
        std::fs::create_dir_all(&copies).unwrap();
        for file in bodies(&whole) {
            std::fs::copy(&file, copies.join(file.file_name().unwrap())).unwrap();
        }
        let mut damaged = bytes.clone();
        for _ in 0..1 + random.below(4) {
            let at = used[random.below(used.len() as u64) as usize];
            let length = 1 + random.below(24) as usize;
            let end = (at + length).min(damaged.len());
            for byte in &mut damaged[at..end] {
                *byte = random.below(256) as u8;
            }
        }
        std::fs::write(folder.join("etiquette.redb"), damaged).unwrap();
        let errors: Arc<AtomicUsize> = Arc::default();
        let counting = Arc::clone(&errors);
        let opened = tokio::spawn(async move {
            let store = DiskStore::open(folder.path()).unwrap().on_error(move |_| {
                counting.fetch_add(1, Ordering::SeqCst);
            });
            check(&store, case).await
        });
        let found = opened.await.unwrap();
        some += usize::from(found > 0);
        all += usize::from(found == PAGES as usize + 1 + HOSTS.len());
        reported += usize::from(errors.load(Ordering::SeqCst) > 0);
    }
    std::panic::set_hook(hook);
    assert!(
        some > 0 && all < 60 && reported > 0,
        "{some} {all} {reported}"
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_a_miss_that_is_reported() {
    let folder = TempFolder::new();
    fill(folder.path()).await;
    let errors: Arc<AtomicUsize> = Arc::default();
    let counting = Arc::clone(&errors);
    let store = DiskStore::open(folder.path()).unwrap().on_error(move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
    });
    // A folder stands where the file was, which no permission changes.
    let file = bodies(&folder).pop().unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_eq!(check(&store, 0).await, PAGES as usize + HOSTS.len());
    assert_eq!(errors.load(Ordering::SeqCst), 1);
    // The next look does not stumble over it again.
    assert_eq!(check(&store, 0).await, PAGES as usize + HOSTS.len());
    assert_eq!(errors.load(Ordering::SeqCst), 1);
}

#[test]
fn a_folder_that_is_none_is_an_error_that_names_it() {
    let folder = TempFolder::new();
    let path = folder.join("file");
    std::fs::write(&path, b"no folder").unwrap();
    let refused = DiskStore::open(&path).unwrap_err();
    assert!(matches!(refused, DiskError::Unusable(..)));
    assert!(refused.to_string().contains(&path.display().to_string()));
    assert!(std::error::Error::source(&refused).is_some());
}

/// A fuzzer that begins with seeds that are refused at their first byte finds nothing behind it.
#[test]
fn the_seeds_of_the_fuzzer_are_records() {
    let seed = |name: &str| {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../crates/etiquette-core/fuzz/corpus/records"
        );
        std::fs::read(Path::new(folder).join(name)).unwrap()
    };
    let head = StoredResponse::decode(&seed("head")).unwrap();
    assert_eq!(head.headers()["etag"], "\"a\"");
    let host = HostRecord::decode(&seed("host")).unwrap();
    assert_eq!(host.backoff_level(), 1);
    let robots = StoredRobots::decode(&seed("robots"), Some(Bytes::new()));
    assert!(robots.copy.is_some() && robots.failure.is_some());
}
