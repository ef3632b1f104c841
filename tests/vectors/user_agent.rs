//! `user_agent/`: names that are built, names that are judged, names that are taken.

use std::fmt::Debug;

use etiquette_core::vocabulary::identity::{InvalidIdentity, Style, Verdict, known_agent};
use etiquette_core::{Identity, PurposeKind};
use etiquette_tests::vectors::{Report, documents, rows};
use serde_json::Value;

#[test]
fn user_agent() {
    let mut report = Report::new("user_agent");
    build(&mut report);
    disguise(&mut report);
    known(&mut report);
    crate::purpose::play(&mut report);
    report.finish();
}

pub(crate) fn same<T: PartialEq + Debug>(expected: &T, came: &T) -> Result<(), String> {
    if expected == came {
        Ok(())
    } else {
        Err(format!("expected {expected:?}, came {came:?}"))
    }
}

fn identity(input: &Value) -> Result<Identity, InvalidIdentity> {
    let text = |key: &str| input[key].as_str().map(str::to_owned);
    let given = |key: &str| text(key).unwrap_or_default();
    let mut builder = match input["style"].as_str() {
        Some("raw") => Identity::raw(given("token"), given("raw")),
        Some("product") => {
            Identity::builder(given("token"), given("version"), given("url")).style(Style::Product)
        }
        _ => Identity::builder(given("token"), given("version"), given("url")),
    };
    if let Some(token) = text("user_token") {
        builder = builder.user_token(token);
    }
    if let Some(contact) = text("contact") {
        builder = builder.contact(contact);
    }
    if let Some(comment) = text("comment") {
        builder = builder.comment(comment);
    }
    for product in input["extra_products"].as_array().into_iter().flatten() {
        builder = builder.product(product.as_str().unwrap());
    }
    if let Some(bytes) = input["max_len"].as_u64() {
        builder = builder.max_len(usize::try_from(bytes).unwrap());
    }
    builder.build()
}

fn build(report: &mut Report) {
    let file = "user_agent/build.json";
    for row in rows(file, "cases") {
        let outcome = match identity(&row["input"]) {
            Ok(identity) => {
                let mut came = serde_json::json!({
                    "user_agent": identity.user_agent(PurposeKind::Crawl).to_str().unwrap(),
                });
                if identity.user_token().is_some() {
                    came["user_fetch_user_agent"] = identity
                        .user_agent(PurposeKind::UserFetch)
                        .to_str()
                        .unwrap()
                        .into();
                }
                came
            }
            Err(error) => serde_json::json!({ "error": error.kind() }),
        };
        report.row(file, id(&row), same(&row["expect"], &outcome));
    }
}

fn disguise(report: &mut Report) {
    let file = "user_agent/disguise.json";
    for document in documents(file) {
        let mut input = document["identity"].clone();
        input["user_token"] = input["other_tokens"][0].clone();
        let identity = identity(&input).unwrap();
        for row in document["cases"].as_array().unwrap() {
            let value = row["user_agent"].as_str().unwrap();
            let verdict = identity.judge(value.as_bytes()).kind();
            report.row(
                file,
                id(row),
                same(&row["verdict"].as_str().unwrap(), &verdict),
            );
        }
    }
}

/// Nobody takes the token of a known agent, and nobody's User-Agent is fit for somebody else.
fn known(report: &mut Report) {
    let file = "user_agent/known.json";
    let own = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
        .build()
        .unwrap();
    for row in rows(file, "") {
        let token = row["token"].as_str().unwrap();
        let purpose = row["purpose"].as_str().unwrap();
        let mut outcome = match known_agent(token) {
            Some(_) => Ok(()),
            None => Err("is not in the table".to_owned()),
        };
        if row["facts"]["token_is_rfc9309"] == true {
            let taken = Identity::builder(token, "1", "https://www.example.com/").build();
            outcome = outcome.and(same(
                &Some("impersonates_known_agent"),
                &taken.as_ref().err().map(InvalidIdentity::kind),
            ));
        }
        if let Some(value) = row["ua"].as_str() {
            let verdict = own.judge(value.as_bytes());
            outcome = outcome.and(match purpose {
                // A library's name is nobody's: unidentified, or a disguise where the library poses as a browser.
                "library_default" if verdict != Verdict::Ok => Ok(()),
                _ => same(&Verdict::Impersonation, &verdict),
            });
        }
        report.row(file, token, outcome);
    }
}

fn id(row: &Value) -> &str {
    row["id"].as_str().unwrap()
}
