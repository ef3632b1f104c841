//! The `crawl` example in two processes that name one server: the site sees one visitor.

use std::process::Child;
use std::time::{Duration, Instant};

use clap::Parser;
use etiquette_examples::{crawl, site};
use etiquette_tests::{process, promises};

use crate::server::Server;

/// Not a test by itself: a process that crawls as the example does.
#[test]
fn crawler() {
    let Ok(words) = std::env::var("ETIQUETTE_CRAWLER") else {
        return;
    };
    let args = crawl::Args::parse_from(words.split(' '));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let never = std::future::pending();
    let outcome = runtime.block_on(crawl::run(&args, &mut std::io::stdout(), never));
    let outcome = outcome.unwrap();
    println!("{}", outcome.runs[0]);
}

struct Crawler(Child);

impl Crawler {
    fn start(site: &str, server: &Server) -> Self {
        let words = format!(
            "crawl {site} --redis {} --allow-private --delay 0.2 --quiet",
            server.url()
        );
        let process = process::test("crawl::crawler")
            .env("ETIQUETTE_CRAWLER", words)
            .spawn();
        Self(process.unwrap())
    }

    async fn ends_within(&mut self, limit: Duration) {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return;
            }
            assert!(Instant::now() < end, "it does not end");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Crawler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_crawl_a_site_as_one() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.has_been_in_use();
    let site = site::serve().await.unwrap();
    let start = site.url("/");
    let mut crawlers = [
        Crawler::start(&start, &server),
        Crawler::start(&start, &server),
    ];
    for crawler in &mut crawlers {
        crawler.ends_within(Duration::from_secs(60)).await;
    }
    let log = site.log().entries();
    for entry in &log {
        println!("{entry}");
    }
    promises::named(&log, "ExampleBot").expect_kept();
    promises::robots_first(&log).expect_kept();
    promises::nothing_disallowed(&log, site::DISALLOWED).expect_kept();
    promises::smallest_delay(&log, site::CRAWL_DELAY).expect_kept();
    promises::pause_kept(&log, Duration::ZERO).expect_kept();
    promises::slower_afterwards(&log).expect_kept();
    assert!(promises::most_at_once(&log) <= 1);
    // After the pause the rules are asked for again, with the validator, by one of them.
    let rules: Vec<u16> = log
        .iter()
        .filter(|entry| entry.is_robots_txt())
        .filter_map(|entry| entry.status)
        .map(|status| status.as_u16())
        .collect();
    assert_eq!(rules, [200, 304], "once for both");
    let pauses = log.iter().filter(|entry| entry.pause().is_some()).count();
    assert_eq!(pauses, 1);
}
