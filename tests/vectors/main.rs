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
mod user_agent;
mod web_bot_auth;

/// Sets whose feature does not exist yet. It shrinks; a set that is played must not stand here.
const NOT_YET: &[(&str, &str)] = &[];

#[test]
fn not_yet() {
    for (set, feature) in NOT_YET {
        println!("not yet: {feature} ({set})");
    }
}
