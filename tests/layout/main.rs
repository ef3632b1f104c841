//! How the crates are laid out: no files that take names from each other in a loop, no long files, no long functions.
//!
//! It reads the sources and builds nothing. A file takes a name from another by a `use` or a path; a re-export counts for
//! the file that defines what it names. What a method of another file's `impl` does is not seen.

#![allow(clippy::print_stdout, reason = "a test says which are the longest")]

mod modules;
mod source;
mod ties;
mod tokens;

use std::fmt::Write;

use source::{Source, code, crates, functions};
use ties::{loops, ties};

/// No source file has more lines.
const LONGEST_FILE: usize = 600;

/// No function has more lines between its braces, but for the tables below.
const LONGEST_FUNCTION: usize = 70;

/// Functions that are one table of sentences.
const TABLES: [&str; 2] = [
    "crates/etiquette-robots/src/lint/problem.rs",
    "crates/tower-etiquette/src/page/text.rs",
];

#[test]
fn no_files_take_names_from_each_other_in_a_loop() {
    let mut found = String::new();
    for sources in crates() {
        let code = code(&sources);
        let ties = ties(&code);
        for members in loops(code.len(), &ties) {
            let paths: Vec<_> = members.iter().map(|file| code[*file].path).collect();
            writeln!(found, "\n{}", paths.join("\n")).unwrap();
            for ((from, to), names) in &ties {
                if members.contains(from) && members.contains(to) {
                    let names: Vec<_> = names.iter().copied().collect();
                    let (from, to) = (code[*from].path, code[*to].path);
                    writeln!(found, "  {from} -> {to}: {}", names.join(", ")).unwrap();
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "files in loops, and what ties them:\n{found}"
    );
}

#[test]
fn no_file_is_long() {
    let mut longest: Vec<_> = crates()
        .iter()
        .flatten()
        .map(|Source { path, text }| (text.lines().count(), path.clone()))
        .collect();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    println!("{:#?}", &longest[..5]);
    let too_long: Vec<_> = longest
        .iter()
        .filter(|file| file.0 > LONGEST_FILE)
        .collect();
    assert!(
        too_long.is_empty(),
        "more than {LONGEST_FILE} lines: {too_long:#?}"
    );
}

#[test]
fn no_function_is_long() {
    let mut longest = Vec::new();
    for sources in crates() {
        for file in code(&sources) {
            if TABLES.contains(&file.path) {
                continue;
            }
            for (name, line, lines) in functions(&file) {
                longest.push((lines, format!("{}:{line} {name}", file.path)));
            }
        }
    }
    longest.sort_unstable_by(|a, b| b.cmp(a));
    println!("{:#?}", &longest[..5]);
    let too_long: Vec<_> = longest
        .iter()
        .filter(|it| it.0 > LONGEST_FUNCTION)
        .collect();
    assert!(
        too_long.is_empty(),
        "more than {LONGEST_FUNCTION} lines: {too_long:#?}"
    );
}
