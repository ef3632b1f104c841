//! Rows that name what no runner knows: each fails by its id, none silently and none by a panic.

use etiquette_tests::folder::TempFolder;
use etiquette_tests::vectors::{Report, UNKNOWN, Vectors};
use serde_json::{Value, json};

type Play = fn(&Vectors) -> Report;

/// Plays `rows` as the only ones of `file`, and gives what failed.
fn failures(play: Play, file: &str, document: &Value) -> Vec<String> {
    let folder = TempFolder::new();
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, document.to_string()).unwrap();
    let report = play(&Vectors::in_folder(folder.path()));
    report.failures().to_vec()
}

/// Plays `rows`, each of which has an id of its own, and fails unless each of them failed as one that is not known.
fn all_are_unknown(play: Play, file: &str, document: &Value, rows: &Value) {
    let failures = failures(play, file, document);
    let rows = rows.as_array().unwrap();
    assert_eq!(failures.len(), rows.len(), "{failures:#?}");
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let failure = failures.iter().find(|failure| {
            failure.contains(&format!(" {id}:")) || failure.contains(&format!(" {id} ("))
        });
        let failure = failure.unwrap_or_else(|| panic!("{id} did not fail: {failures:#?}"));
        assert!(failure.contains(UNKNOWN), "{failure}");
        assert!(!failure.contains("panicked"), "{failure}");
    }
}

/// As [`all_are_unknown`], for files whose rows stand at `cases`.
fn cases_are_unknown(play: Play, file: &str, rows: &Value) {
    all_are_unknown(play, file, &json!({ "cases": rows }), rows);
}

#[test]
fn of_robots() {
    let rows = json!([
        {"id": "m1", "robots": "", "agents": ["a"], "url": "http://a/", "allowed": true, "mood": "new"},
        {"id": "m2", "robots": "", "agents": ["a"], "url": "http://a/", "allowed": "yes"},
        {"id": "m3", "agents": ["a"], "url": "http://a/", "allowed": true},
        {"id": "m4", "robots": "", "agents": "a", "url": "http://a/", "allowed": true},
    ]);
    all_are_unknown(crate::robots::play, "robots/matching.json", &rows, &rows);
    let rows = json!([
        {"id": "p1", "kind": "sing", "input": "x", "expect": null},
        {"id": "p2", "kind": "parse", "robots": "", "agent": "a", "expect": {"colour": "red"}},
        {"id": "p3", "kind": "parse", "robots": "", "agent": "a", "expect": {"allowed": 1}},
        {"id": "p4", "kind": "parse", "robots": "", "agent": "a", "expect": {}, "tone": "sharp"},
        {"id": "p5", "kind": "parse", "robots": "", "agent": "a", "expect": ["rules"]},
        {"id": "p6", "kind": "valid_token", "input": ["x"], "expect": true},
        {"id": "p7", "kind": "path", "input": "http://a/", "expect": "/", "tone": "sharp"},
        {"id": "p8", "kind": "parse", "robots": "", "agent": "a", "expect": {"crawl_delay_s": {"near": 1}}},
    ]);
    all_are_unknown(crate::robots::play, "robots/parsing.json", &rows, &rows);
    let rows = json!([
        {"id": "f1", "given": {"status": 200}, "expect": "applause"},
        {"id": "f2", "given": {"status": 200, "smell": "sweet"}, "expect": "allow_all"},
        {"id": "f3", "given": {"error": "boredom"}, "expect": "disallow_all"},
        {"id": "f4", "given": {"status": 200}, "expect": {"fetch": "http://a/robots.txt"}},
        {"id": "f5", "given": {"status": 301, "redirects": "maze"}, "expect": "allow_all"},
        {"id": "f6", "given": {"status": 200}, "config": {"max_rest_s": 5}, "expect": "allow_all"},
        {"id": "f7", "given": {"cached": {"age_s": 1, "taste": "stale"}}, "expect": "rules"},
        {"id": "f8", "given": {"status": 200, "headers": {"a b": "c"}}, "expect": "allow_all"},
    ]);
    all_are_unknown(crate::robots::play, "robots/fetching.json", &rows, &rows);
}

#[test]
fn of_retry_after() {
    let play = crate::retry_after::play;
    let row =
        json!({"retry_after": [], "date": null, "now_unix": 0, "accept": [{"kind": "ignore"}]});
    let with = |id: &str, key: &str, value: Value| {
        let mut row = row.clone();
        row["id"] = id.into();
        row[key] = value;
        row
    };
    let rows = json!([
        with("r1", "accept", json!([{"kind": "hope"}])),
        with("r2", "accept", json!([{"kind": "wait", "weeks": 1}])),
        with("r3", "date_of_birth", json!("never")),
        with("r4", "retry_after", json!([5])),
        with("r5", "now_unix", json!("now")),
    ]);
    cases_are_unknown(play, "retry_after/parse.json", &rows);

    let config = json!({
        "cap": 1, "min_gap": 1.0, "default_pause": 60, "default_pause_503": 30, "latency": 0.1, "body_time": 0,
        "queue_per_host": 100, "max_wait_user": 10,
    });
    let row = json!({
        "submit": [{"t": 0, "n": 1, "host": "a"}], "origin": [],
        "expect": [{"arrivals": {"host": "a", "n": 1}}],
    });
    let with = |id: &str, key: &str, value: Value| {
        let mut row = row.clone();
        row["id"] = id.into();
        row[key] = value;
        row
    };
    let rows = json!([
        with(
            "s1",
            "expect",
            json!([{"arrivals_in_style": {"host": "a"}}])
        ),
        with(
            "s2",
            "expect",
            json!([{"arrivals": {"host": "a", "n": 1, "colour": "red"}}])
        ),
        with("s3", "expect", json!([{"arrivals": {"n": 1}, "fifo": {}}])),
        with(
            "s4",
            "expect",
            json!([{"errors": {"host": "a", "kind": "boredom", "n": 0}}])
        ),
        with(
            "s5",
            "expect",
            json!([{"min_gap": {"host": "a", "seconds": "long"}}])
        ),
        with("s6", "config", json!({"colour": "red"})),
        with("s7", "config", json!({"group": "family"})),
        with(
            "s8",
            "submit",
            json!([{"t": 0, "n": 1, "host": "a", "mode": "bored"}])
        ),
        with(
            "s9",
            "submit",
            json!([{"t": 0, "n": 1, "host": "a", "tone": "sharp"}])
        ),
        with("s10", "origin", json!([{"status": 200, "smell": "sweet"}])),
        with("s11", "origin", json!([{"error": "boredom"}])),
        with("s12", "events", json!([{"t": 1, "applaud": "x"}])),
        with("s13", "scene", json!("night")),
        with(
            "s14",
            "origin",
            json!([{"headers": {"retry-after": "@+soon"}}])
        ),
        with(
            "s15",
            "expect",
            json!([{"rate_ratio": {"host": "a", "window": [0]}}])
        ),
        with("s16", "config", json!({"layers": ["cake"]})),
        with(
            "s17",
            "expect",
            json!([{"next_arrival": {"host": "a", "le": 1}}])
        ),
    ]);
    let document = json!({"defaults": config, "scenarios": rows});
    all_are_unknown(play, "retry_after/scenarios.json", &document, &rows);
}

#[test]
fn of_cache() {
    let with = |id: &str, step: Value| json!({"id": id, "cache": "private", "steps": [step]});
    let request = json!({"path": "/"});
    let origin = json!({"status": 200});
    let rows = json!([
        with("c1", json!({"request": request, "origin": origin, "expect": {"from": "heaven"}})),
        with("c2", json!({"request": request, "origin": origin, "expect": {"from": "origin", "mood": 1}})),
        with("c3", json!({"request": {"path": "/", "tone": "sharp"}, "origin": origin, "expect": {"from": "origin"}})),
        with("c4", json!({"request": request, "origin": {"status": 200, "smell": 1}, "expect": {"from": "origin"}})),
        with("c5", json!({"action": "applaud"})),
        with("c6", json!({"request": {"headers": [["a b", "c"]], "path": "/"}, "origin": origin, "expect": {"from": "origin"}})),
        with("c7", json!({"request": request, "origin": origin, "expect": {"from": "origin", "headers": 3}})),
        {"id": "c8", "cache": "secret", "steps": []},
        {"id": "c9", "cache": "private", "steps": [], "config": {"default_colour": "red"}},
        {"id": "c10", "cache": "private", "steps": [], "check": {"store_smell_max": 1}},
        {"id": "c11", "cache": "private", "steps": [], "scene": "night"},
    ]);
    cases_are_unknown(crate::cache::play, "cache/cases.json", &rows);
}

#[test]
fn of_purpose() {
    let names = json!({"crawl_token": "ExampleBot", "user_token": "Example-User"});
    let robots = |id: &str, key: &str, value: Value| {
        let mut row = json!({
            "id": id, "kind": "robots", "robots_status": 404, "robots_txt": "", "purpose": "crawl", "path": "/",
            "expect": "allow",
        });
        row[key] = value;
        row
    };
    let steps =
        |id: &str, kind: &str, steps: Value| json!({"id": id, "kind": kind, "steps": steps});
    let page = "https://site.example/p";
    let rows = json!([
        robots("u1", "kind", json!("dance")),
        robots("u2", "expect", json!("applaud")),
        robots("u3", "purpose", json!("boredom")),
        robots("u4", "robots_scope", json!("all_and_more")),
        robots("u5", "tone", json!("sharp")),
        robots("u6", "request_headers", json!({"a b": "c"})),
        robots(
            "u7",
            "api",
            json!({"declared": "https://a/", "key_smell": "sweet"})
        ),
        steps("u8", "navigation", json!([["applaud", page, "sent"]])),
        steps(
            "u9",
            "navigation",
            json!([["permit", page, "ok"], ["get", page, "sung"]])
        ),
        steps(
            "u10",
            "navigation",
            json!([["permit", page, "ok"], ["get", page, "sent->2000"]])
        ),
        steps(
            "u11",
            "navigation",
            json!([
                ["permit", page, "ok"],
                ["get", page, "sent->200 a sweet smell"]
            ])
        ),
        steps("u12", "navigation", json!([["permit", page, "perhaps"]])),
        steps(
            "u13",
            "navigation",
            json!([["permit", page, "ok"], ["get", page, "sent at noon"]])
        ),
        steps("u14", "navigation", json!([{"verb": "get"}])),
        steps("u15", "retention", json!([["applaud", page, "200"]])),
        steps(
            "u16",
            "retention",
            json!([["user_fetch", page, "200 a sweet smell"]])
        ),
        steps(
            "u17",
            "retention",
            json!([["user_fetch", page, "may be sung"]])
        ),
        steps(
            "u18",
            "retention",
            json!([["user_fetch", page, "200"], ["session_store_entries", 3]])
        ),
    ]);
    let document = json!({"identity": names, "cases": rows});
    all_are_unknown(
        crate::user_agent::play,
        "user_agent/purpose.json",
        &document,
        &rows,
    );
}

#[test]
fn of_user_agent() {
    let play = crate::user_agent::play;
    let rows = json!([
        {"id": "b1", "input": {"style": "baroque"}, "expect": {"error": "empty_token"}},
        {"id": "b2", "input": {"colour": "red"}, "expect": {"error": "empty_token"}},
        {"id": "b3", "input": {}, "expect": {"applause": 1}},
        {"id": "b4", "input": {"extra_products": [1]}, "expect": {"error": "empty_token"}},
    ]);
    cases_are_unknown(play, "user_agent/build.json", &rows);
    let rows = json!([{"id": "d1", "user_agent": "x", "verdict": "ok", "tone": "sharp"}]);
    let names = json!({
        "token": "ExampleBot", "version": "1", "url": "https://www.example.com/", "other_tokens": ["Other-User"],
    });
    let document = json!({"identity": names, "cases": rows});
    all_are_unknown(play, "user_agent/disguise.json", &document, &rows);
    let rows = json!([{"id": "GPTBot", "token": "GPTBot", "purpose": "crawl", "facts": {}, "mood": "new"}]);
    let failures = failures(play, "user_agent/known.json", &rows);
    assert!(
        failures[0].starts_with("user_agent/known.json GPTBot: "),
        "{failures:?}"
    );
    assert!(failures[0].contains(UNKNOWN), "{failures:?}");
}

#[test]
fn of_preferences() {
    let play = crate::preferences::play;
    let unknown = |file: &str, rows: Value| {
        cases_are_unknown(play, &format!("preferences/{file}.json"), &rows);
    };
    unknown(
        "content_usage_header",
        json!([
            {"id": "w1", "header_lines": [], "expect": {"sing": "allow"}},
            {"id": "w2", "header_lines": [], "tone": "sharp", "expect": {}},
            {"id": "w3", "header_lines": [1], "expect": {}},
        ]),
    );
    unknown(
        "content_usage_robots",
        json!([{"id": "w4", "robots_txt": "", "path": "/", "token": "a b", "expect": {"crowd": true}}]),
    );
    unknown(
        "content_signal",
        json!([{"id": "w5", "token": "a", "expect": {"search": "unknown"}}]),
    );
    unknown(
        "x_robots_tag",
        json!([{"id": "w6", "header_lines": [], "token": "a", "expect": [1]}]),
    );
    unknown(
        "meta_robots",
        json!([{"id": "w7", "html": 1, "token": "a", "expect": []}]),
    );
    unknown(
        "tdm",
        json!([
            {"id": "w8", "input": {"headers": {"a b": "c"}}, "expect": {"reserved": null}},
            {"id": "w9", "input": {"smell": "sweet"}, "expect": {"reserved": null}},
        ]),
    );
    unknown(
        "combine",
        json!([{"id": "w10", "sources": {"rumour": "y"}, "expect": {"search": "unknown"}}]),
    );
}

#[test]
fn of_discovery() {
    let play = crate::discovery::play;
    let unknown = |file: &str, rows: Value| {
        cases_are_unknown(play, &format!("discovery/{file}.json"), &rows);
    };
    unknown(
        "accept_build",
        json!([
            {"id": "a1", "input": {"presets": ["song"]}, "expect": {"accept": "*/*"}},
            {"id": "a2", "input": {"colour": "red"}, "expect": {"accept": "*/*"}},
            {"id": "a3", "input": {"types": [["text/html", "much"]]}, "expect": {"accept": "*/*"}},
            {"id": "a4", "input": {}, "expect": {"applause": 1}},
        ]),
    );
    unknown(
        "acceptability",
        json!([
            {"id": "a5", "accept": "*/*", "content_type": "a/b", "expect": "perhaps"},
            {"id": "a6", "accept": "*/*", "content_type": "a/b", "expect": "ok", "tone": "sharp"},
        ]),
    );
    let site = json!({"start": "https://site.example/", "responses": {}});
    unknown(
        "discover",
        json!([
            {"id": "a7", "site": site, "want": ["song"], "expect": {"sources": [], "requests": []}},
            {"id": "a8", "site": site, "expect": {"sources": [], "requests": [], "mood": "new"}},
            {"id": "a9", "site": {"start": "https://site.example/", "smell": 1}, "expect": {}},
            {"id": "a10", "site": {"start": "https://site.example/", "responses": {"https://site.example/": {"tone": 1}}}, "expect": {}},
        ]),
    );
    unknown(
        "sitemap_documents",
        json!([
            {"id": "a11", "sitemap_url": "https://site.example/s", "body": "", "expect": {"mood": 1}},
            {"id": "a12", "sitemap_url": "not one", "body": "", "expect": {"type": "index"}},
        ]),
    );
    unknown(
        "sitemap_gzip",
        json!([
            {"id": "a13", "url": "https://site.example/s", "expect": "sing"},
            {"id": "a14", "url": "https://site.example/s", "expect": "parse", "tone": "sharp"},
        ]),
    );
}

#[test]
fn of_web_bot_auth() {
    let play = crate::web_bot_auth::play;
    let request = json!({"method": "GET", "url": "https://site.example/", "headers": {}});
    let signing = |id: &str, key: &str, value: Value| {
        let mut row = json!({
            "id": id, "algorithm": "ed25519", "request": request, "headers_to_send": {}, "label": "sig1",
            "signature_params": "()", "signature_base": "", "components": [],
        });
        row[key] = value;
        row
    };
    let rows = json!([
        signing("g1", "algorithm", json!("rot13")),
        signing("g2", "tone", json!("sharp")),
        signing(
            "g3",
            "request",
            json!({"method": "GET", "url": "https://site.example/", "smell": 1})
        ),
        signing("g4", "headers_to_send", json!({"a b": "c"})),
    ]);
    let document = json!({ "vectors": rows });
    all_are_unknown(play, "web_bot_auth/signing.json", &document, &rows);
    let rows = json!([
        {"id": "v1", "request": request, "now": 0, "directory_has_key": true, "expected": {"mood": "new"}},
        {"id": "v2", "request": request, "now": "noon", "directory_has_key": true, "expected": {}},
        {"id": "v3", "request": request, "now": 0, "directory_has_key": true, "expected": {}, "tone": 1},
    ]);
    let document = json!({ "vectors": rows });
    all_are_unknown(play, "web_bot_auth/verifying.json", &document, &rows);
}

/// What rows may say beyond those that are committed: verdicts in `parsing.json`, any header in a step of `purpose.json`.
#[test]
fn what_is_known_beyond_the_committed_rows() {
    let file = "User-agent: *\nDisallow: /x\n";
    let rows = json!([
        {"id": "1", "kind": "parse", "robots": file, "agent": "a", "expect": {"allowed": true}},
        {"id": "2", "kind": "parse", "robots": file, "agent": "a", "url": "http://a/x", "expect": {"allowed": false}},
        {"id": "3", "kind": "parse", "robots": file, "agent": "a", "path": "/y", "expect": {"allowed": true}},
        {"id": "4", "kind": "parse", "robots": file, "agent": "a", "expect": {"allowed": {"/x": false, "http://a/y": true}}},
        {"id": "5", "kind": "parse", "robots": file, "agent": "a", "expect": {"allowed": [["/x", false], ["/y", true]]}},
        {"id": "wrong", "kind": "parse", "robots": file, "agent": "a", "expect": {"allowed": {"/x": true}}},
    ]);
    let failed = failures(crate::robots::play, "robots/parsing.json", &rows);
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert!(
        failed[0].starts_with("robots/parsing.json wrong: "),
        "{failed:?}"
    );

    let page = "https://site.example/p";
    let kept = |id: &str, result: &str, may_train: Value| {
        json!({"id": id, "kind": "retention", "steps": [
            ["user_fetch", page, result], ["extension.may_train", may_train], ["extension.may_retain", false],
        ]})
    };
    let rows = json!([
        kept("1", "200 x-robots-tag: noai", json!(false)),
        kept("2", "200 content-usage: train-ai=n, etag: \"a\"", json!(false)),
        kept("3", "200 cache-control: no-cache, max-age=60", json!(false)),
        kept("wrong", "200 x-robots-tag=noai tdm-reservation=1", json!(true)),
        {"id": "5", "kind": "navigation", "steps": [
            ["permit", page, "ok"], ["get", page, "sent->429 retry-after=1 x-other=2"], ["retry", page, "wait 1s, sent"],
        ]},
    ]);
    let document = json!({
        "identity": {"crawl_token": "ExampleBot", "user_token": "Example-User"}, "cases": rows,
    });
    let failed = failures(
        crate::user_agent::play,
        "user_agent/purpose.json",
        &document,
    );
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert!(
        failed[0].starts_with("user_agent/purpose.json wrong: "),
        "{failed:?}"
    );
}
