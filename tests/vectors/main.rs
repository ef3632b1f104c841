//! The JSON vector sets, one module and one test function per folder.
//!
//! Each reads the committed copy beside this file and, when the environment variable `ETIQUETTE_VECTORS` names a
//! folder, the same sub-folder and file names there.

#![allow(clippy::print_stdout, reason = "a test says what it skips and counts")]

mod accept;
mod cache;
mod discovery;
mod preferences;
mod purpose;
mod retry_after;
mod robots;
mod robots_fetching;
mod unknown;
mod user_agent;
mod web_bot_auth;

/// Sets whose feature does not exist yet. It shrinks; a set that is played must not stand here.
const NOT_YET: &[(&str, &str)] = &[];

/// The sets that the modules above play.
const PLAYED: &[&str] = &[
    "cache/cases.json",
    "discovery/accept_build.json",
    "discovery/acceptability.json",
    "discovery/discover.json",
    "discovery/sitemap_documents.json",
    "discovery/sitemap_gzip.json",
    "preferences/combine.json",
    "preferences/content_signal.json",
    "preferences/content_usage_header.json",
    "preferences/content_usage_robots.json",
    "preferences/meta_robots.json",
    "preferences/tdm.json",
    "preferences/x_robots_tag.json",
    "retry_after/parse.json",
    "retry_after/scenarios.json",
    "robots/fetching.json",
    "robots/matching.json",
    "robots/parsing.json",
    "user_agent/build.json",
    "user_agent/disguise.json",
    "user_agent/known.json",
    "user_agent/purpose.json",
    "web_bot_auth/signing.json",
    "web_bot_auth/verifying.json",
];

#[test]
fn every_set_is_played_or_listed() {
    for (set, feature) in NOT_YET {
        println!("not yet: {feature} ({set})");
    }
    let folder = etiquette_tests::vectors::Vectors::committed();
    let mut sets = Vec::new();
    for topic in folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        for file in topic
            .read_dir()
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
        {
            if file
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                sets.push(file.strip_prefix(&folder).unwrap().display().to_string());
            }
        }
    }
    let mut known: Vec<_> = PLAYED
        .iter()
        .chain(NOT_YET.iter().map(|(set, _)| set))
        .copied()
        .collect();
    sets.sort();
    known.sort_unstable();
    assert_eq!(sets, known, "a set is neither played nor listed, or both");
}
