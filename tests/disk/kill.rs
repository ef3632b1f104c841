//! A writer that is killed at random moments: nothing corrupt, no acknowledged delete undone, the size within its bound.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::Selecting;
use etiquette_core::store::ResponseStore;
use etiquette_tests::folder::TempFolder;
use etiquette_tests::process;
use etiquette_tests::random::Random;
use tower_etiquette::disk::DiskStore;

use crate::{head, key};

const FOLDER: &str = "ETIQUETTE_KILLED_FOLDER";
const SEED: &str = "ETIQUETTE_KILLED_SEED";
const LIMIT: u64 = 200_000;
const ROUNDS: u64 = 50;
const KEYS: u64 = 12;

/// The body of a version: every byte depends on it.
fn body(version: u64) -> Bytes {
    let length = usize::try_from(1 + version % 40_000).unwrap();
    let unit = version.to_be_bytes();
    unit.iter()
        .copied()
        .cycle()
        .take(length)
        .collect::<Vec<_>>()
        .into()
}

/// Runs in a process of its own, which [`nothing_is_corrupt_after_a_kill`] starts and kills.
#[test]
#[ignore = "the process that is killed by another test"]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let mut random = Random::new(std::env::var(SEED).unwrap().parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = DiskStore::with_max_bytes(folder, LIMIT).unwrap();
        let say = |line: String| {
            let mut out = std::io::stdout().lock();
            writeln!(out, "@{line}").unwrap();
            out.flush().unwrap();
        };
        for step in 0.. {
            let number = random.below(KEYS);
            let name = key(&number.to_string());
            if random.below(4) == 0 {
                say(format!("{number} removing"));
                store.remove(&name, None).await.unwrap();
                say(format!("{number} removed"));
                continue;
            }
            let version = random.below(u64::MAX) ^ step;
            say(format!("{number} putting"));
            let head = head(&[("x-version", &version.to_string())], Selecting::default());
            store.put(&name, head, body(version), &[]).await.unwrap();
            say(format!("{number} put"));
        }
    });
}

#[test]
fn nothing_is_corrupt_after_a_kill() {
    let folder = TempFolder::new();
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let mut writer = process::test("kill::writer")
            .env(FOLDER, folder.path())
            .env(SEED, (random.below(u64::MAX) | 1).to_string())
            .spawn()
            .unwrap();
        let out = BufReader::new(writer.stdout.take().unwrap());
        // The moment is random in the writer's own steps and in time.
        let steps = 2 + random.below(30);
        let mut lines = out.lines().map_while(Result::ok);
        let mut take = |line: String| {
            if let Some((number, what)) = line
                .split_once('@')
                .and_then(|(_, line)| line.split_once(' '))
            {
                acknowledged += u64::from(what == "removed" || what == "put");
                last.insert(number.to_owned(), what.to_owned());
            }
        };
        for _ in 0..steps {
            take(lines.next().expect("the writer goes on until it is killed"));
        }
        std::thread::sleep(Duration::from_micros(random.below(4_000)));
        writer.kill().unwrap();
        writer.wait().unwrap();
        lines.for_each(take);
        check(&folder, &last, round);
    }
    assert!(acknowledged > ROUNDS, "{acknowledged} acknowledged");
}

fn check(folder: &TempFolder, last: &BTreeMap<String, String>, round: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = DiskStore::with_max_bytes(folder.path(), LIMIT).unwrap();
        assert!(
            store.bytes() <= LIMIT,
            "round {round}: {} bytes",
            store.bytes()
        );
        for number in 0..KEYS {
            let name = key(&number.to_string());
            let found = store.get(&name).await.unwrap();
            let state = last.get(&number.to_string()).map(String::as_str);
            if matches!(state, None | Some("removed")) {
                assert!(found.is_empty(), "round {round}: {number} came back");
            }
            for variant in found {
                let version = variant.head.headers()["x-version"]
                    .to_str()
                    .unwrap()
                    .parse()
                    .unwrap();
                let bytes = store.body(&name, &variant.head).await.unwrap().unwrap();
                assert_eq!(bytes, body(version), "round {round}: {number}");
            }
        }
        let files = std::fs::read_dir(folder.join("bodies")).unwrap();
        let size: u64 = files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum();
        assert!(size <= LIMIT, "round {round}: {size} bytes of files");
    });
}
