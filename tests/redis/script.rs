//! What can be seen of the script without a server.

use std::collections::BTreeSet;

const SCRIPT: &str = include_str!("../../crates/tower-etiquette-redis/src/host.lua");

/// Keywords, and what a server gives to a script.
const GIVEN: &[&str] = &[
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in",
    "ipairs", "local", "math", "nil", "not", "or", "pairs", "redis", "repeat", "return", "string",
    "table", "then", "tonumber", "true", "type", "unpack", "until", "while", "ARGV", "KEYS",
];

/// The words of a line of Lua outside strings and comments, each with what stands before it.
fn words(line: &str) -> Vec<(char, &str)> {
    let code = line.split("--").next().unwrap_or_default();
    let mut words = Vec::new();
    for part in code.split('\'').step_by(2) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut before = ' ';
        let mut rest = part;
        while let Some(start) =
            rest.find(|c: char| c.is_ascii_alphabetic() || c == '_' || c.is_ascii_digit())
        {
            before = rest[..start].chars().last().unwrap_or(before);
            rest = &rest[start..];
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            words.push((before, &rest[..end]));
            rest = &rest[end..];
        }
    }
    words
}

/// The names that a line declares: of variables, and of a function and its parameters.
fn declared(line: &str) -> &str {
    let line = line.trim_start();
    if let Some(function) = line.strip_prefix("local function ") {
        return function;
    }
    let declaration = line.strip_prefix("local ").or(line.strip_prefix("for "));
    let end = |text: &str| text.find(" in ").or(text.find('=')).unwrap_or(text.len());
    declaration.map_or("", |text| &text[..end(text)])
}

#[test]
fn each_name_of_the_script_is_declared() {
    let mut known: BTreeSet<_> = GIVEN.iter().copied().collect();
    for line in SCRIPT.lines() {
        known.extend(words(declared(line)).into_iter().map(|(_, word)| word));
    }
    let mut unknown = BTreeSet::new();
    for line in SCRIPT.lines() {
        for (before, word) in words(line) {
            // A key of a table is copied from the state: `{ ls = s.ls }`.
            let is_key = line.contains(&format!("{word} = s.{word}"));
            let is_number = word.starts_with(|c: char| c.is_ascii_digit());
            if before != '.' && !is_number && !is_key && !known.contains(word) {
                unknown.insert(word);
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:?}");
}
