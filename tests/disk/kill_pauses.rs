//! A client that is killed at random moments: no pause that somebody has heard of is forgotten.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use etiquette_core::store::journal::HostJournal;
use etiquette_tests::client::{fetch, get};
use etiquette_tests::folder::TempFolder;
use etiquette_tests::process;
use etiquette_tests::random::Random;
use etiquette_tests::site::{Answer, Script, Site};
use tower_etiquette::disk::DiskStore;
use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts};
use tower_layer::Layer;

const FOLDER: &str = "ETIQUETTE_PAUSED_FOLDER";
const SEED: &str = "ETIQUETTE_PAUSED_SEED";
const ROUNDS: u64 = 50;
/// So many requests are under way at once, so that one sync serves several of them.
const TASKS: u64 = 4;

/// How long the sites of this test ask to be left alone, each differently.
fn wait(number: u64) -> u64 {
    3_600 + number % 7_200
}

/// Runs in a process of its own, which [`no_pause_is_forgotten_after_a_kill`] starts and kills.
#[test]
#[ignore = "the process that is killed by another test"]
fn client() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = DiskStore::open(folder).unwrap();
        let hosts = Hosts::builder()
            .policy(HostPolicy::new())
            .journal(Arc::new(store))
            .build();
        let busy = Script::call(|arrival| {
            let number = arrival.host.split('.').next().unwrap();
            Answer::retry_after(429, wait(number.parse().unwrap()))
        });
        let site = Site::builder().otherwise(busy).in_process();
        let client = HostBudgetLayer::new(hosts).layer(site);
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..TASKS {
            // Odd factors, so that no two of these walk through the same numbers.
            let factor = 0xd134_2543_de82_ef95_u64.wrapping_mul(2 * task + 3);
            let (client, mut random) = (client.clone(), Random::new(seed.wrapping_mul(factor) | 1));
            tasks.spawn(async move {
                loop {
                    let number = random.below(u64::MAX);
                    let request = get(&format!("http://{number}.example/"));
                    let page = fetch(client.clone(), request).await.unwrap();
                    assert_eq!(page.status, 429);
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "@{number}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
        tasks.join_next().await.unwrap().unwrap();
    });
}

#[test]
fn no_pause_is_forgotten_after_a_kill() {
    let folder = TempFolder::new();
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    let mut heard: BTreeMap<u64, SystemTime> = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut client = process::test("kill_pauses::client")
            .env(FOLDER, folder.path())
            .env(SEED, (random.below(u64::MAX) | 1).to_string())
            .spawn()
            .unwrap();
        // What is heard of was answered after this.
        let began = tower_etiquette::Clock::now(&tower_etiquette::TokioClock).wall;
        let out = BufReader::new(client.stdout.take().unwrap());
        let mut lines = out.lines().map_while(Result::ok);
        let mut take = |line: String| {
            let number = line.split_once('@').and_then(|(_, text)| text.parse().ok());
            heard.extend(number.map(|number| (number, began)));
            number.is_some()
        };
        let steps = 1 + random.below(12);
        let mut taken = 0;
        while taken < steps {
            let line = lines.next().expect("the client goes on until it is killed");
            taken += u64::from(take(line));
        }
        std::thread::sleep(Duration::from_micros(random.below(4_000)));
        client.kill().unwrap();
        client.wait().unwrap();
        for line in lines {
            take(line);
        }
        let store = DiskStore::open(folder.path()).unwrap();
        let records: BTreeMap<_, _> = store.records().into_iter().collect();
        for (number, answered) in &heard {
            let record = records.get(&format!("{number}.example"));
            let record = record.unwrap_or_else(|| panic!("round {round}: {number} is forgotten"));
            let until = record.as_ref().expect("whole").paused_until();
            assert!(
                until >= *answered + Duration::from_secs(wait(*number)),
                "round {round}: {number} is paused until {until:?}"
            );
        }
    }
    assert!(heard.len() as u64 > ROUNDS, "{} heard of", heard.len());
}
