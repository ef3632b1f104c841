//! A cold visit for a person, over real TLS: http leads to https, both origins have rules, and nobody waits long.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use clap::Parser;
use etiquette_examples::fetch::{Args, Exit, run};
use etiquette_tests::folder::TempFolder;
use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Authority, Site};

const HOST: &str = "site.test";

/// What each answer takes.
const STEP: Duration = Duration::from_millis(50);

/// How long a person waits, with the default budget.
const PATIENCE: Duration = Duration::from_secs(2);

/// One visit by a client that knows nothing yet; how long it took.
async fn visit(authority: &std::sync::Arc<Authority>, root: &std::path::Path) -> Duration {
    let rules = Answer::text("User-agent: *\nDisallow: /\n").after(STEP);
    let secure = Site::builder()
        .https(authority)
        .at("/robots.txt", rules.clone())
        .at("/page", Answer::of("text/markdown", "# Hello").after(STEP))
        .start()
        .await
        .unwrap();
    let plain = Site::builder()
        .at("/robots.txt", rules)
        .at(
            "/page",
            Answer::redirect(&secure.url_as(HOST, "/page")).after(STEP),
        )
        .start()
        .await
        .unwrap();
    let resolve = |site: &Site| format!("--resolve={HOST}:{}:{}", site.port(), Ipv4Addr::LOCALHOST);
    let args = Args::parse_from([
        "fetch",
        &plain.url_as(HOST, "/page"),
        &resolve(&plain),
        &resolve(&secure),
        &format!("--cacert={}", root.display()),
        "--allow-private",
        "--token=AcmeBot",
        "--user-token=Acme-Reader",
        "--bot-version=1",
        "--info-url=https://bot.acme.org/",
    ]);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let started = Instant::now();
    let exit = run(&args, &mut out, &mut err).await;
    let took = started.elapsed();
    let errors = String::from_utf8_lossy(&err);
    assert_eq!((exit, &out[..]), (Exit::Done, &b"# Hello"[..]), "{errors}");
    for site in [&plain, &secure] {
        assert_eq!(site.log().targets(), ["/robots.txt", "/page"]);
        promises::named(&site.log().entries(), "Acme-Reader").expect_kept();
    }
    assert!(took >= 4 * STEP, "{took:?}");
    took
}

#[tokio::test]
async fn a_cold_visit_ends_before_its_reader_gives_up() {
    let authority = Authority::new(&[HOST], &["h2", "http/1.1"]);
    let folder = TempFolder::new();
    let root = folder.join("root.der");
    std::fs::write(&root, authority.root_der()).unwrap();
    // A machine with other things to do may take longer once; a client that waits takes longer each time.
    let mut took = Vec::new();
    while took.len() < 3 && took.iter().all(|took| *took > PATIENCE) {
        took.push(visit(&authority, &root).await);
    }
    eprintln!("cold visits with answers of {STEP:?}: {took:?}");
    assert!(took.iter().any(|took| *took <= PATIENCE), "{took:?}");
}
