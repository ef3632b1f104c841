//! A client that is killed at random moments: no pause that somebody has heard of is forgotten.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::store::journal::HostJournal;
use http::{Request, Response};
use http_body_util::{Empty, Full};
use tower::{ServiceExt, service_fn};
use tower_etiquette::disk::DiskStore;
use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts};
use tower_layer::Layer;

use crate::kill::Dice;
use crate::{Folder, child};

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
        let site = service_fn(|request: Request<Empty<Bytes>>| {
            let host = request.uri().host().unwrap();
            let number = host.split('.').next().unwrap().parse().unwrap();
            let answer = Response::builder()
                .status(429)
                .header("retry-after", wait(number))
                .body(Full::<Bytes>::default());
            std::future::ready(Ok::<_, Infallible>(answer.unwrap()))
        });
        let client = HostBudgetLayer::new(hosts).layer(site);
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..TASKS {
            // Odd factors, so that no two of these walk through the same numbers.
            let factor = 0xd134_2543_de82_ef95_u64.wrapping_mul(2 * task + 3);
            let (client, mut dice) = (client.clone(), Dice(seed.wrapping_mul(factor) | 1));
            tasks.spawn(async move {
                loop {
                    let number = dice.roll(u64::MAX);
                    let request = Request::get(format!("http://{number}.example/"))
                        .body(Empty::new())
                        .unwrap();
                    let response = client.clone().oneshot(request).await.unwrap();
                    assert_eq!(response.status(), 429);
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
    let folder = Folder::new();
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut heard: BTreeMap<u64, SystemTime> = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut client = child("kill_pauses::client")
            .env(FOLDER, &folder.0)
            .env(SEED, (dice.roll(u64::MAX) | 1).to_string())
            .spawn()
            .unwrap();
        // What is heard of was answered after this.
        let began = tower_etiquette::Clock::now(&tower_etiquette::TokioClock).wall;
        let out = BufReader::new(client.stdout.take().unwrap());
        let mut lines = out.lines().map_while(Result::ok);
        let mut note = |line: String| {
            let number = line.split_once('@').and_then(|(_, text)| text.parse().ok());
            heard.extend(number.map(|number| (number, began)));
            number.is_some()
        };
        let steps = 1 + dice.roll(12);
        let mut taken = 0;
        while taken < steps {
            let line = lines.next().expect("the client goes on until it is killed");
            taken += u64::from(note(line));
        }
        std::thread::sleep(Duration::from_micros(dice.roll(4_000)));
        client.kill().unwrap();
        client.wait().unwrap();
        for line in lines {
            note(line);
        }
        let store = DiskStore::open(&folder.0).unwrap();
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
