//! `web_bot_auth/`: what is signed, byte for byte, and what a verifier makes of it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::time::{Duration, UNIX_EPOCH};

use etiquette_core::signing::{
    AgentForm, Component, SignatureInput, Signer, SigningKey, directory, verify,
};
use etiquette_tests::vectors::{Report, rows};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use serde_json::{Value, json};

use crate::user_agent::same;

#[test]
fn web_bot_auth() {
    let mut report = Report::new("web_bot_auth");
    signing(&mut report);
    verifying(&mut report);
    report.finish();
}

fn text<'v>(row: &'v Value, key: &str) -> &'v str {
    row[key].as_str().unwrap_or_default()
}

/// Method, URL and headers of a request.
fn head(request: &Value) -> (Method, Uri, HeaderMap) {
    let method = text(request, "method").parse().unwrap();
    let uri = text(request, "url").parse().unwrap();
    (method, uri, headers(&request["headers"]))
}

fn headers(fields: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields.as_object().into_iter().flatten() {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value.as_str().unwrap()).unwrap(),
        );
    }
    headers
}

fn signing(report: &mut Report) {
    let file = "web_bot_auth/signing.json";
    for row in rows(file, "vectors") {
        let id = text(&row, "id");
        if row["algorithm"] != "ed25519" {
            report.left_out(file, id, "this crate signs and verifies with Ed25519 only");
            continue;
        }
        let outcome = if row["response_body"].is_string() {
            signed_directory(&row)
        } else {
            signed_base(&row).and_then(|()| signed_request(&row))
        };
        report.row(file, id, outcome);
    }
}

/// The very base and the very signature, for any components and any order of parameters.
fn signed_base(row: &Value) -> Result<(), String> {
    let (method, uri, mut sent) = head(&row["request"]);
    sent.extend(headers(&row["headers_to_send"]));
    let params = text(row, "signature_params");
    let input = SignatureInput::parse(params).ok_or("its parameters do not parse")?;
    same(&params, &input.to_text().as_str())?;
    let base = input.base(&method, &uri, &sent);
    let base = base.map_err(|missing| missing.to_string())?;
    same(&text(row, "signature_base"), &base.as_str())?;
    let signature = SigningKey::published_for_tests().sign(&base);
    let sent = text(&row["headers_to_send"], "Signature").to_owned();
    same(
        &sent,
        &format!(
            "{}=:{}:",
            text(row, "label"),
            BASE64_STANDARD.encode(&signature)
        ),
    )
}

/// The very headers, where the row has the form that the signer makes.
fn signed_request(row: &Value) -> Result<(), String> {
    let (method, uri, mut sent) = head(&row["request"]);
    let params = text(row, "signature_params");
    let made = text(row, "label") == "sig1" && !params.contains(";alg=");
    if !made || !params.ends_with(";tag=\"web-bot-auth\"") {
        return Ok(());
    }
    let number = |name: &str| -> u64 {
        let (_, rest) = params.split_once(&format!(";{name}=")).unwrap();
        let end = rest.find(';').unwrap();
        rest[..end].parse().unwrap()
    };
    let created = UNIX_EPOCH + Duration::from_secs(number("created"));
    let lifetime = Duration::from_secs(number("expires") - number("created"));
    let nonce = params
        .split_once(";nonce=\"")
        .map(|(_, rest)| &rest[..rest.find('"').unwrap()]);
    let components = row["components"].as_array().unwrap().iter();
    let cover = components.filter_map(|component| {
        Some(match component.as_str().unwrap().trim_matches('"') {
            "@authority" => Component::Authority,
            "@method" => Component::Method,
            "@path" => Component::Path,
            "@query" => Component::Query,
            "@scheme" => Component::Scheme,
            "@target-uri" => Component::TargetUri,
            "@request-target" => Component::RequestTarget,
            agent if agent.starts_with("signature-agent") => return None,
            field => Component::Field(HeaderName::from_bytes(field.as_bytes()).unwrap()),
        })
    });
    let expected = headers(&row["headers_to_send"]);
    let agent = expected["signature-agent"].to_str().unwrap();
    let form = if agent.starts_with('"') {
        AgentForm::BareString
    } else {
        AgentForm::Dictionary
    };
    let link = agent.split('"').nth(1).unwrap();
    let signer = Signer::new(SigningKey::published_for_tests(), link)
        .unwrap()
        .cover(cover)
        .lifetime(lifetime)
        .agent_form(form);
    let signed = signer.sign_with(&method, &uri, &mut sent, created, nonce);
    signed.map_err(|missing| missing.to_string())?;
    for (name, value) in &expected {
        same(&Some(value), &sent.get(name))?;
    }
    Ok(())
}

fn signed_directory(row: &Value) -> Result<(), String> {
    let (_, uri, _) = head(&row["request"]);
    let params = text(row, "signature_params");
    let number = |name: &str| -> u64 {
        let (_, rest) = params.split_once(&format!(";{name}=")).unwrap();
        rest[..rest.find(';').unwrap()].parse().unwrap()
    };
    let sent = directory::headers(
        &SigningKey::published_for_tests(),
        text(row, "response_body"),
        uri.host().unwrap(),
        UNIX_EPOCH + Duration::from_secs(number("created")),
        Duration::from_secs(number("expires") - number("created")),
    );
    for (name, value) in &headers(&row["headers_to_send"]) {
        same(&Some(value), &sent.get(name))?;
    }
    let keys = directory::keys(text(row, "response_body")).ok_or("no directory")?;
    same(
        &keys,
        &vec![SigningKey::published_for_tests().public().clone()],
    )
}

fn verifying(report: &mut Report) {
    let file = "web_bot_auth/verifying.json";
    for row in rows(file, "vectors") {
        let (method, uri, headers) = head(&row["request"]);
        let now = row["now"].as_u64().unwrap();
        let has_key = row["directory_has_key"] == true;
        let outcome = verify(&method, &uri, &headers, now, |_, _| {
            has_key.then(|| SigningKey::published_for_tests().public().clone())
        });
        let came = json!({
            "outcome": outcome.kind(),
            "reason": outcome.reason().map(etiquette_core::signing::Reason::kind),
        });
        report.row(file, text(&row, "id"), same(&row["expected"], &came));
    }
}
