//! `web_bot_auth/`: what is signed, byte for byte, and what a verifier makes of it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::time::{Duration, UNIX_EPOCH};

use etiquette_core::signing::{
    AgentForm, Component, SignatureInput, Signer, SigningKey, directory, verify,
};
use etiquette_tests::vectors::Kind::{Any, Flag, List, Number, Object, Text};
use etiquette_tests::vectors::{
    Kind, Report, RowResult, Vectors, any_text, headers, list, only_keys, same, text, unknown,
    whole,
};
use http::{HeaderMap, HeaderName, Method, Uri};
use serde_json::{Value, json};

#[test]
fn web_bot_auth() {
    play(&Vectors::from_env()).finish();
}

pub(crate) fn play(vectors: &Vectors) -> Report {
    let mut report = Report::new("web_bot_auth");
    let file = "web_bot_auth/signing.json";
    for row in vectors.rows(file, "vectors") {
        let algorithm = row["algorithm"].as_str().unwrap_or_default();
        if algorithm.starts_with("rsa-pss") {
            let id = row["id"].as_str().unwrap_or("?");
            report.left_out(file, id, "this crate signs and verifies with Ed25519 only");
            continue;
        }
        report.play(file, &row, signing);
    }
    let file = "web_bot_auth/verifying.json";
    for row in vectors.rows(file, "vectors") {
        report.play(file, &row, verifying);
    }
    report
}

const REQUEST: &[(&str, Kind)] = &[
    ("body", Any),
    ("headers", Object),
    ("method", Text),
    ("url", Text),
];

/// Method, URL and headers of a request.
fn head(request: &Value) -> Result<(Method, Uri, HeaderMap), String> {
    only_keys(request, "request", REQUEST)?;
    let wrong = || unknown(format_args!("the request {request}"));
    let method = text(request, "method")?.parse().map_err(|_| wrong())?;
    let uri = text(request, "url")?.parse().map_err(|_| wrong())?;
    Ok((method, uri, headers(&request["headers"])?))
}

const SIGNING: &[(&str, Kind)] = &[
    ("id", Text),
    ("algorithm", Text),
    ("components", List),
    ("headers_to_send", Object),
    ("label", Text),
    ("request", Object),
    ("response_body", Text),
    ("signature", Text),
    ("signature_base", Text),
    ("signature_params", Text),
    // For the reader.
    ("component_values", Any),
    ("deterministic", Flag),
    ("draft_status", Text),
    ("key", Text),
    ("verified", Any),
];

fn signing(row: &Value) -> RowResult {
    only_keys(row, "the row", SIGNING)?;
    match text(row, "algorithm")? {
        "ed25519" => {}
        other => return Err(unknown(format_args!("the algorithm {other:?}"))),
    }
    if row["response_body"].is_string() {
        signed_directory(row)
    } else {
        signed_base(row)?;
        signed_request(row)
    }
}

/// The very base and the very signature, for any components and any order of parameters.
fn signed_base(row: &Value) -> RowResult {
    let (method, uri, mut sent) = head(&row["request"])?;
    sent.extend(headers(&row["headers_to_send"])?);
    let params = text(row, "signature_params")?;
    let input = SignatureInput::parse(params).ok_or("its parameters do not parse")?;
    same(params, input.to_text().as_str())?;
    let base = input.base(&method, &uri, &sent);
    let base = base.map_err(|missing| missing.to_string())?;
    same(text(row, "signature_base")?, base.as_str())?;
    let signature = SigningKey::published_for_tests().sign(&base);
    let sent = text(&row["headers_to_send"], "Signature")?;
    let signature = BASE64_STANDARD.encode(&signature);
    same(sent, &*format!("{}=:{signature}:", text(row, "label")?))
}

/// The very headers, where the row has the form that the signer makes.
fn signed_request(row: &Value) -> RowResult {
    let (method, uri, mut sent) = head(&row["request"])?;
    let params = text(row, "signature_params")?;
    let made = text(row, "label")? == "sig1" && !params.contains(";alg=");
    if !made || !params.ends_with(";tag=\"web-bot-auth\"") {
        return Ok(());
    }
    let created = UNIX_EPOCH + Duration::from_secs(param(params, "created")?);
    let lifetime = lifetime(params)?;
    let nonce = params
        .split_once(";nonce=\"")
        .map(|(_, rest)| &rest[..rest.find('"').unwrap()]);
    let mut cover = Vec::new();
    for component in list(row, "components")? {
        cover.push(match any_text(component)?.trim_matches('"') {
            "@authority" => Component::Authority,
            "@method" => Component::Method,
            "@path" => Component::Path,
            "@query" => Component::Query,
            "@scheme" => Component::Scheme,
            "@target-uri" => Component::TargetUri,
            "@request-target" => Component::RequestTarget,
            agent if agent.starts_with("signature-agent") => continue,
            field => Component::Field(
                HeaderName::from_bytes(field.as_bytes())
                    .map_err(|_| unknown(format_args!("the component {component}")))?,
            ),
        });
    }
    let expected = headers(&row["headers_to_send"])?;
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

/// A number among the parameters of a signature.
fn param(params: &str, name: &str) -> Result<u64, String> {
    let number = || {
        let (_, rest) = params.split_once(&format!(";{name}="))?;
        rest[..rest.find(';')?].parse().ok()
    };
    number().ok_or_else(|| unknown(format_args!("no {name} in {params}")))
}

/// From creation to expiry.
fn lifetime(params: &str) -> Result<Duration, String> {
    let lifetime = param(params, "expires")?.checked_sub(param(params, "created")?);
    let lifetime = lifetime.ok_or_else(|| unknown(format_args!("the lifetime of {params}")))?;
    Ok(Duration::from_secs(lifetime))
}

fn signed_directory(row: &Value) -> RowResult {
    let (_, uri, _) = head(&row["request"])?;
    let params = text(row, "signature_params")?;
    let body = text(row, "response_body")?;
    let sent = directory::headers(
        &SigningKey::published_for_tests(),
        body,
        uri.host().unwrap_or_default(),
        UNIX_EPOCH + Duration::from_secs(param(params, "created")?),
        lifetime(params)?,
    );
    for (name, value) in &headers(&row["headers_to_send"])? {
        same(&Some(value), &sent.get(name))?;
    }
    let keys = directory::keys(body).ok_or("no directory")?;
    same(
        &keys,
        &vec![SigningKey::published_for_tests().public().clone()],
    )
}

fn verifying(row: &Value) -> RowResult {
    let keys = [
        ("id", Text),
        ("directory_has_key", Flag),
        ("expected", Object),
        ("now", Number),
        ("request", Object),
    ];
    only_keys(row, "the row", &keys)?;
    only_keys(
        &row["expected"],
        "expected",
        &[("outcome", Text), ("reason", Text)],
    )?;
    let (method, uri, headers) = head(&row["request"])?;
    let has_key = row["directory_has_key"] == true;
    let outcome = verify(&method, &uri, &headers, whole(row, "now")?, |_, _| {
        has_key.then(|| SigningKey::published_for_tests().public().clone())
    });
    let came = json!({
        "outcome": outcome.kind(),
        "reason": outcome.reason().map(etiquette_core::signing::Reason::kind),
    });
    same(&row["expected"], &came)
}
