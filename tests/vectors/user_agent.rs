//! `user_agent/`: names that are built, names that are judged, names that are taken.

use etiquette_core::vocabulary::identity::{InvalidIdentity, Style, Verdict, known_agent};
use etiquette_core::{Identity, PurposeKind};
use etiquette_tests::vectors::Kind::{List, Number, Object, Text};
use etiquette_tests::vectors::{
    Kind, Report, RowResult, Vectors, any_text, only_keys, optional, same, text, unknown, whole,
};
use serde_json::{Value, json};

#[test]
fn user_agent() {
    play(&Vectors::from_env()).finish();
}

pub(crate) fn play(vectors: &Vectors) -> Report {
    let mut report = Report::new("user_agent");
    let file = "user_agent/build.json";
    for row in vectors.rows(file, "cases") {
        report.play(file, &row, build);
    }
    disguise(vectors, &mut report);
    let file = "user_agent/known.json";
    for row in vectors.rows(file, "") {
        let token = row["token"].as_str().unwrap_or("(a row without a token)");
        report.play_as(file, token, || known(&row));
    }
    crate::purpose::play(vectors, &mut report);
    report
}

const INPUT: &[(&str, Kind)] = &[
    ("comment", Text),
    ("contact", Text),
    ("extra_products", List),
    ("max_len", Number),
    ("raw", Text),
    ("style", Text),
    ("token", Text),
    ("url", Text),
    ("user_token", Text),
    ("version", Text),
];

fn identity(input: &Value) -> Result<Result<Identity, InvalidIdentity>, String> {
    only_keys(input, "input", INPUT)?;
    let given = |key: &str| input[key].as_str().map(str::to_owned);
    let or_empty = |key: &str| given(key).unwrap_or_default();
    let parts = || Identity::builder(or_empty("token"), or_empty("version"), or_empty("url"));
    let mut builder = match input["style"].as_str() {
        Some("raw") => Identity::raw(or_empty("token"), or_empty("raw")),
        Some("product") => parts().style(Style::Product),
        Some("compatible") | None => parts(),
        Some(other) => return Err(unknown(format_args!("the style {other:?}"))),
    };
    if let Some(token) = given("user_token") {
        builder = builder.user_token(token);
    }
    if let Some(contact) = given("contact") {
        builder = builder.contact(contact);
    }
    if let Some(comment) = given("comment") {
        builder = builder.comment(comment);
    }
    for product in input["extra_products"].as_array().into_iter().flatten() {
        builder = builder.product(any_text(product)?);
    }
    if optional(input, "max_len").is_some() {
        builder = builder.max_len(whole(input, "max_len")?);
    }
    Ok(builder.build())
}

fn build(row: &Value) -> RowResult {
    only_keys(
        row,
        "the row",
        &[("id", Text), ("input", Object), ("expect", Object)],
    )?;
    let keys = [
        ("error", Text),
        ("user_agent", Text),
        ("user_fetch_user_agent", Text),
    ];
    only_keys(&row["expect"], "expect", &keys)?;
    let came = match identity(&row["input"])? {
        Ok(identity) => {
            let name = |kind| String::from_utf8_lossy(identity.user_agent(kind).as_bytes());
            let mut came = json!({ "user_agent": name(PurposeKind::Crawl) });
            if identity.user_token().is_some() {
                came["user_fetch_user_agent"] = json!(name(PurposeKind::UserFetch));
            }
            came
        }
        Err(error) => json!({ "error": error.kind() }),
    };
    same(&row["expect"], &came)
}

fn disguise(vectors: &Vectors, report: &mut Report) {
    let file = "user_agent/disguise.json";
    for document in vectors.documents(file) {
        for row in document["cases"].as_array().expect("cases is a list") {
            report.play(file, row, |row| judged(&document["identity"], row));
        }
    }
}

/// What the identity makes of a value that somebody wants to send.
fn judged(names: &Value, row: &Value) -> RowResult {
    only_keys(
        row,
        "the row",
        &[("id", Text), ("user_agent", Text), ("verdict", Text)],
    )?;
    let builder = Identity::builder(
        text(names, "token")?,
        text(names, "version")?,
        text(names, "url")?,
    );
    let other = any_text(&names["other_tokens"][0])?;
    let identity = builder.user_token(other).build();
    let identity = identity.map_err(|error| error.to_string())?;
    let verdict = identity.judge(text(row, "user_agent")?.as_bytes()).kind();
    same(text(row, "verdict")?, verdict)
}

const KNOWN: &[(&str, Kind)] = &[
    ("facts", Object),
    ("operator", Text),
    ("purpose", Text),
    ("token", Text),
    ("ua", Text),
    // For the reader.
    ("ip_list_url", Kind::Any),
    ("operator_doc_url", Kind::Any),
    ("robots", Text),
    ("signs", Kind::Any),
];

/// Nobody takes the token of a known agent, and nobody's User-Agent is fit for somebody else.
fn known(row: &Value) -> RowResult {
    only_keys(row, "the row", KNOWN)?;
    let own = etiquette_tests::client::identity();
    let token = text(row, "token")?;
    if known_agent(token).is_none() {
        return Err("is not in the table".to_owned());
    }
    if row["facts"]["token_is_rfc9309"] == true {
        let taken = Identity::builder(token, "1", "https://www.example.com/").build();
        let error = taken.as_ref().err().map(InvalidIdentity::kind);
        same(&Some("impersonates_known_agent"), &error)?;
    }
    let Some(value) = row["ua"].as_str() else {
        return Ok(());
    };
    match own.judge(value.as_bytes()) {
        // A library's name is nobody's: unidentified, or a disguise where the library poses as a browser.
        verdict if text(row, "purpose")? == "library_default" && verdict != Verdict::Ok => Ok(()),
        verdict => same(&Verdict::Impersonation, &verdict),
    }
}
