//! Live requests, signed by the client and verified by somebody else: Python's `cryptography` package, with a reading of
//! RFC 9421 of its own (`signatures/verify.py`). Skipped, with a line, where there is no such package.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use bytes::Bytes;
use etiquette_tests::site::{Answer, Site};
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Empty};
use hyper::service::service_fn;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::Service;
use tower_etiquette::client::Client;
use tower_etiquette::sign::{Component, KeyDirectory, SignLayer, Signer, SigningKey};
use tower_etiquette::{Hosts, Purpose, Session};

use crate::client::{identity, millis, policy};

const AGENT: &str = "https://www.example.com";

/// Whether the other implementation is installed.
fn is_installed() -> bool {
    let asked = Command::new("python3")
        .args(["-c", "import cryptography"])
        .stderr(Stdio::null())
        .status();
    let installed = asked.is_ok_and(|status| status.success());
    if !installed {
        eprintln!("skipped: python3 with the package cryptography is not installed");
    }
    installed
}

/// What the other implementation says about `captured`, and whether it believes it.
fn verify(captured: &Value) -> (bool, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/signatures/verify.py");
    let mut python = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = python.stdin.take().unwrap();
    stdin.write_all(captured.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = python.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

fn lines(headers: &HeaderMap) -> Value {
    let lines = headers
        .iter()
        .map(|(name, value)| json!([name.as_str(), value.to_str().unwrap()]));
    lines.collect()
}

/// The requests that a site saw of a client with this signer: a page with the rules before it, and a page for a person.
async fn requests(signer: Signer) -> Vec<Value> {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /private\n")
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let named = tower_etiquette::Identity::builder("ExampleBot", "0.1", identity().url())
        .user_token("Example-User")
        .build()
        .unwrap();
    let client = Client::builder(named)
        .hosts(Hosts::new(policy(millis(20))))
        .sign(SignLayer::new(signer))
        .build()
        .unwrap();
    let page = site.url("/page?of=1&more=%20");
    client.get(&page).await.unwrap();
    let other = site.url("/other");
    let grant = Session::new().grant(&other.parse().unwrap()).unwrap();
    let purpose = Purpose::UserFetch(grant);
    client.get_for(&other, purpose).await.unwrap();
    let seen = site.log().entries();
    assert_eq!(
        site.log().targets(),
        ["/robots.txt", "/page?of=1&more=%20", "/other"]
    );
    seen.iter()
        .map(|entry| {
            json!({
                "method": entry.method.as_str(),
                "scheme": "http",
                "authority": entry.host,
                "target": entry.target,
                "headers": lines(&entry.headers),
            })
        })
        .collect()
}

/// The key directory as it is served.
async fn directory(signer: &Signer) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let service = KeyDirectory::new(signer);
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let service = service_fn(move |request| service.clone().call(request));
        let http = hyper::server::conn::http1::Builder::new();
        let _ = http.serve_connection(TokioIo::new(stream), service).await;
    });
    let client = legacy::Client::builder(TokioExecutor::new()).build_http();
    let request = Request::get(format!("http://{address}{}", KeyDirectory::PATH))
        .header(header::HOST, "www.example.com")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let headers = lines(response.headers());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serving.abort();
    json!({
        "authority": "www.example.com",
        "headers": headers,
        "body": String::from_utf8(body.to_vec()).unwrap(),
    })
}

#[tokio::test]
async fn another_implementation_verifies_what_is_sent() {
    if !is_installed() {
        return;
    }
    let (key, _) = SigningKey::generate().unwrap();
    let signer = Signer::new(key, AGENT).unwrap();
    let directory = directory(&signer).await;
    let more = [
        Component::Authority,
        Component::Method,
        Component::Scheme,
        Component::TargetUri,
        Component::RequestTarget,
        Component::Path,
        Component::Query,
        Component::Field(header::USER_AGENT),
    ];
    let mut seen = requests(signer.clone()).await;
    seen.extend(requests(signer.clone().nonce(true).cover(more)).await);
    assert!(seen[0]["target"] == "/robots.txt", "{seen:?}");
    let captured = json!({ "agent": AGENT, "directory": directory, "requests": seen });
    let (believed, said) = verify(&captured);
    eprint!("{said}");
    assert!(believed, "{said}");
    assert_eq!(said.matches("verified ").count(), 7, "{said}");

    // Whoever changes a request, or serves the directory as his own, is not believed.
    for (pointer, changed) in [
        ("/requests/1/target", "/private"),
        ("/requests/0/method", "DELETE"),
        ("/requests/2/authority", "other.example"),
        ("/requests/4/target", "/page?of=2"),
        ("/directory/authority", "www.example.org"),
        ("/directory/body", "{\"keys\":[]}"),
    ] {
        let mut captured = captured.clone();
        *captured.pointer_mut(pointer).unwrap() = changed.into();
        let (believed, said) = verify(&captured);
        assert!(!believed, "{pointer}: {said}");
    }
}
