//! A server behind TLS, and one whose user may do no more than is documented.

use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::host::{HostPolicy, StartOptions};
use etiquette_core::decide::robots_txt::StoredOutcome;
use etiquette_core::store::host::{AcquireRequest, HostStore, LeaseId, LocalView};
use etiquette_core::store::{ResponseKey, ResponseStore, RobotsStore};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use tower_etiquette_redis::{Cause, Event, RedisStore};

use crate::server::Server;
use crate::stores::{causes, copy, head, key, listening, until_granted};

const LEASE: Duration = Duration::from_millis(200);

/// Everything that a store does, once.
async fn use_all_of(store: &RedisStore) {
    until_granted(store, "a.example", 0).await;
    let bytes = Bytes::from_static(b"user-agent: *\ndisallow: /");
    let rules = copy(StoredOutcome::Rules(Some(bytes)));
    store.claim(&key()).await.unwrap();
    store.save(&key(), rules.clone()).await.unwrap();
    assert_eq!(store.load(&key()).await.unwrap(), Some(rules));
    store
        .save(&key(), copy(StoredOutcome::Unavailable))
        .await
        .unwrap();

    let url = ResponseKey::of(&"https://site.example/a?b".parse().unwrap()).unwrap();
    for length in [10, 600_000] {
        let body = Bytes::from(vec![7; length]);
        let head = head("\"a\"", None);
        store.put(&url, head, body.clone(), &[]).await.unwrap();
        let variants = store.get(&url).await.unwrap();
        assert_eq!(variants.len(), 1, "the one before is replaced");
        let found = store.body(&url, &variants[0].head).await.unwrap();
        assert_eq!(found, Some(body));
    }
    let writer = store.write(&url, None).unwrap();
    let writer = writer.write(vec![8; 300_000].into()).await.unwrap();
    let large = head("\"large\"", None);
    writer.finish(large.clone(), Vec::new()).await.unwrap();
    let reader = store.read(&url, &large, 299_999).await.unwrap().unwrap();
    let (last, rest) = reader.next().await.unwrap().unwrap();
    assert_eq!(&last[..], [8]);
    assert!(rest.next().await.unwrap().is_none());
    let newer = head("\"newer\"", None);
    store.update(&url, large.selecting(), newer).await.unwrap();
    store.remove(&url, None).await.unwrap();
    assert!(store.get(&url).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_user_who_may_do_what_is_documented_can_do_everything() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let mut behind = server.connection();
    let documented = "on >secret/1 ~mine:* -@all +@hash +@sortedset +@string +del +unlink +pexpire +multi +exec +evalsha \
                      +script|load +time +info";
    let _: () = redis::cmd("ACL")
        .arg("SETUSER")
        .arg("crawler")
        .arg(documented.split(' ').collect::<Vec<_>>())
        .query(&mut behind)
        .unwrap();
    let _: () = redis::cmd("ACL")
        .arg(&["SETUSER", "default", "off"])
        .query(&mut behind)
        .unwrap();
    let builder = |credentials: &str, namespace: &str| {
        let url = format!("redis://{credentials}127.0.0.1:{}/", server.port());
        RedisStore::builder(url).namespace(namespace).lease(LEASE)
    };
    let (store, heard) = listening(builder("crawler:secret%2F1@", "mine"));
    use_all_of(&store).await;
    assert_eq!(causes(&heard), []);

    let policy = HostPolicy::new();
    for (credentials, namespace) in [
        ("", "mine"),
        ("crawler:wrong@", "mine"),
        ("crawler:secret%2F1@", "others"),
    ] {
        let (store, heard) = listening(builder(credentials, namespace));
        let ask = AcquireRequest::new(LeaseId(0), StartOptions::pace());
        let answer = store
            .acquire(LocalView::new("a.example", &policy), ask)
            .await;
        assert!(answer.is_err(), "{credentials}{namespace}: {answer:?}");
        let text = format!("{:?} {store:?}", heard.lock().unwrap());
        assert_eq!(
            causes(&heard),
            [Cause::Denied],
            "{credentials}{namespace}: {text}"
        );
        assert!(
            !text.contains("secret") && !text.contains("wrong"),
            "a password is nobody's news: {text}"
        );
    }
}

/// A server certificate for 127.0.0.1 and the key to it, and the root that signed it, in PEM.
fn certificates() -> [String; 3] {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = params.signed_by(&key, &issuer).unwrap();
    [leaf.pem(), key.serialize_pem(), issuer.pem()]
}

#[tokio::test]
async fn a_server_behind_tls_is_used_when_its_root_is_trusted() {
    let [certificate, key, root] = certificates();
    let server = Server::start_with(|port, folder| {
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("the temporary folder can be written");
            path.to_str().expect("a path in UTF-8").to_owned()
        };
        vec![
            "--port".into(),
            "0".into(),
            "--tls-port".into(),
            port.to_string(),
            "--tls-cert-file".into(),
            file("cert.pem", &certificate),
            "--tls-key-file".into(),
            file("key.pem", &key),
            "--tls-ca-cert-file".into(),
            file("root.pem", &root),
            "--tls-auth-clients".into(),
            "no".into(),
        ]
    });
    let Some(server) = server else {
        return;
    };
    let builder = || {
        let url = format!("rediss://127.0.0.1:{}/", server.port());
        RedisStore::builder(url)
            .lease(LEASE)
            .timeout(Duration::from_secs(2))
    };
    let trusting = builder().root_certificates(root.clone());
    use_all_of(&trusting.build().unwrap()).await;

    let [_, _, other] = certificates();
    let policy = HostPolicy::new();
    let plain = RedisStore::builder(format!("redis://127.0.0.1:{}/", server.port()));
    for builder in [builder().root_certificates(other), builder(), plain] {
        let (store, heard) = listening(builder);
        let ask = AcquireRequest::new(LeaseId(0), StartOptions::pace());
        let answer = store
            .acquire(LocalView::new("a.example", &policy), ask)
            .await;
        assert!(answer.is_err(), "{answer:?}");
        let heard = heard.lock().unwrap();
        assert!(
            matches!(heard[..], [Event::Failing { .. }]),
            "one event tells it: {heard:?}"
        );
    }
}
