//! `crawl --cache DIR` as its users run it: started again, killed, started twice.

use std::future::pending;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::Duration;

use clap::Parser;
use etiquette_examples::crawl::{Args, Error, Outcome, run};
use etiquette_tests::folder::TempFolder;
use etiquette_tests::site::{Answer, Site};
use etiquette_tests::{process, promises};
use tower_etiquette::disk::{DiskError, DiskStore};

const CRAWL: &str = "ETIQUETTE_CRAWL_ARGUMENTS";

fn args(rest: &[&str]) -> Args {
    Args::try_parse_from(["crawl"].iter().chain(rest)).unwrap()
}

fn cache(folder: &TempFolder) -> String {
    folder.option("--cache")
}

async fn crawl(rest: &[&str]) -> Outcome {
    run(&args(rest), &mut Vec::new(), pending()).await.unwrap()
}

#[tokio::test]
async fn a_second_run_costs_only_conditional_requests() {
    let site = Site::builder()
        .at(
            "/robots.txt",
            Answer::text("User-agent: *\nDisallow: /no\n").etag("\"r\""),
        )
        .at(
            "/",
            Answer::html("<a href=/tag>t</a> <a href=/date>d</a> <a href=/fresh>f</a>")
                .etag("\"i\""),
        )
        .at("/tag", Answer::html("tagged").etag("W/\"t\""))
        .at(
            "/date",
            Answer::html("dated").last_modified("Sun, 01 Nov 2026 08:00:00 GMT"),
        )
        .at(
            "/fresh",
            Answer::html("for a minute")
                .etag("\"f\"")
                .header("cache-control", "max-age=60"),
        )
        .start()
        .await
        .unwrap();
    let folder = TempFolder::new();
    let (start, cache) = (site.url("/"), cache(&folder));
    let options = [&start, &cache, "--allow-private", "--delay=0.03", "--quiet"];
    let first = crawl(&options).await;
    assert_eq!(first.runs[0].network, 4, "{:?}", first.runs);
    site.log().next_run();
    let second = crawl(&options).await;
    let tally = &second.runs[0];
    assert_eq!(
        (tally.network, tally.validated, tally.cache, tally.failed),
        (0, 3, 1, 0),
        "{tally:?}"
    );
    let log = site.log().entries();
    let asked: Vec<_> = log.iter().filter(|entry| entry.run == 2).collect();
    assert_eq!(asked.len(), 3, "{asked:?}");
    for entry in asked {
        assert!(entry.is_conditional(), "{entry:?}");
        assert_eq!(entry.status.unwrap(), 304, "{entry:?}");
    }
    promises::second_run_conditional(&log).expect_kept();
}

/// Runs in a process of its own, which other tests start and kill.
#[test]
#[ignore = "the process that is killed by another test"]
fn process() {
    let Ok(arguments) = std::env::var(CRAWL) else {
        return;
    };
    let arguments: Vec<&str> = arguments.split('\n').collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let outcome = runtime.block_on(run(&args(&arguments), &mut std::io::stdout(), pending()));
    outcome.unwrap();
}

fn spawn(arguments: &[&str]) -> Child {
    process::test("crawl::process")
        .env(CRAWL, arguments.join("\n"))
        .spawn()
        .unwrap()
}

/// A pause as short as a test may take; [`crate::pauses`] has a minute on paused time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_inside_a_pause_and_started_again_it_sends_nothing_before_its_end() {
    const PAUSE: u32 = 4;
    let site = Site::builder()
        .at("/", [Answer::too_many(PAUSE), Answer::html("at last")])
        .start()
        .await
        .unwrap();
    let folder = TempFolder::new();
    let (start, cache) = (site.url("/"), cache(&folder));
    let options = [start.as_str(), &cache, "--allow-private", "--delay=0.03"];
    // The pause is longer than it waits, so that it reports the 429 at once. What it has reported is on the disk.
    let mut first = spawn(&[&options[..], &["--max-wait=1"]].concat());
    let out = BufReader::new(first.stdout.take().unwrap());
    let (killed, lines) = tokio::task::spawn_blocking(move || {
        let mut read = Vec::new();
        for line in out.lines().map_while(Result::ok) {
            let is_refused = line.contains("refused");
            read.push(line);
            if is_refused {
                break;
            }
        }
        first.kill().unwrap();
        (first.wait().unwrap(), read)
    })
    .await
    .unwrap();
    assert!(!killed.success());
    assert!(lines.last().unwrap().contains("refused"), "{lines:?}");
    let before = site.log().entries().len();
    let outcome = tokio::task::spawn_blocking(move || {
        let options = [start.as_str(), &cache, "--allow-private", "--delay=0.03"];
        spawn(&options).wait_with_output().unwrap()
    })
    .await
    .unwrap();
    assert!(outcome.status.success());
    let log = site.log().entries();
    let (_, until) = log.iter().find_map(|entry| entry.pause()).unwrap();
    assert!(log.len() > before, "{log:?}");
    for entry in &log[before..] {
        assert!(entry.at >= until, "{entry:?} before {until:?}");
    }
    assert_eq!(log.last().unwrap().path(), "/");
    assert_eq!(log.last().unwrap().status.unwrap(), 200);
    assert!(until > Duration::from_secs(PAUSE.into()));
}

#[tokio::test]
async fn a_folder_in_use_is_an_error_that_says_so() {
    let site = Site::builder().start().await.unwrap();
    let folder = TempFolder::new();
    let held = DiskStore::open(folder.path()).unwrap();
    let (start, cache) = (site.url("/"), cache(&folder));
    let arguments = args(&[&start, &cache, "--allow-private"]);
    let error = run(&arguments, &mut Vec::new(), pending())
        .await
        .unwrap_err();
    let Error::Client(cause) = error else {
        panic!("{error:?}")
    };
    let cause = cause.downcast_ref::<DiskError>();
    assert_eq!(cause, Some(&DiskError::InUse(folder.path().to_owned())));
    drop(held);
    assert_eq!(site.log().connections(), 0);
}
