//! The files of a crate that are not for tests, and the sizes of what stands in them.

use std::path::{Path, PathBuf};

use crate::tokens::{Token, behind_bracket, is_name, tokens, without_tests};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests stand in a folder of the workspace")
        .to_owned()
}

/// A source file, by its path from the root of the workspace.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All Rust files of `crates/*/src`, a list for each crate.
pub(crate) fn crates() -> Vec<Vec<Source>> {
    let mut crates = Vec::new();
    for folder in entries(&root().join("crates")) {
        let mut sources = Vec::new();
        read_folder(&folder.join("src"), &mut sources);
        crates.push(sources);
    }
    assert!(!crates.is_empty(), "no crates below {}", root().display());
    crates
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn read_folder(folder: &Path, sources: &mut Vec<Source>) {
    for path in entries(folder) {
        if path.is_dir() {
            read_folder(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
            sources.push(Source {
                path: name.replace('\\', "/"),
                text: std::fs::read_to_string(&path).unwrap(),
            });
        }
    }
}

/// A file without what is compiled for tests alone.
#[derive(Debug)]
pub(crate) struct Code<'a> {
    pub(crate) path: &'a str,
    /// The modules that it is, from the root of the crate.
    pub(crate) module: Vec<&'a str>,
    pub(crate) tokens: Vec<Token<'a>>,
}

/// The files of a crate that are compiled without tests.
pub(crate) fn code(sources: &[Source]) -> Vec<Code<'_>> {
    let (mut files, mut test_modules) = (Vec::new(), Vec::new());
    for source in sources {
        let module = module_of(&source.path);
        let (tokens, test_files) = without_tests(&tokens(&source.text));
        for name in test_files {
            test_modules.push([&module[..], &[name]].concat());
        }
        files.push(Code {
            path: &source.path,
            module,
            tokens,
        });
    }
    files.retain(|file| {
        let is_named_so = file
            .module
            .last()
            .is_some_and(|name| *name == "tests" || name.ends_with("_tests"));
        let in_test_module = |tests: &Vec<&str>| file.module.starts_with(tests);
        !is_named_so && !test_modules.iter().any(in_test_module)
    });
    files
}

/// `crates/x/src/a/b.rs` is `a::b`, and so is `crates/x/src/a/b/mod.rs`.
fn module_of(path: &str) -> Vec<&str> {
    let inner = path.split_once("/src/").expect("it is in src").1;
    let mut module: Vec<_> = inner.trim_end_matches(".rs").split('/').collect();
    if matches!(module.last(), Some(&("mod" | "lib"))) {
        module.pop();
    }
    module
}

/// The functions of a file, and how many lines stand between the braces of each.
pub(crate) fn functions<'a>(code: &Code<'a>) -> Vec<(&'a str, usize, usize)> {
    let tokens = &code.tokens;
    let mut functions = Vec::new();
    for at in 0..tokens.len().saturating_sub(1) {
        let name = tokens[at + 1];
        if tokens[at].text != "fn" || !is_name(name.text) {
            continue;
        }
        let mut open = at + 2;
        while open < tokens.len() && !matches!(tokens[open].text, "{" | ";") {
            open = match tokens[open].text {
                "(" | "[" => behind_bracket(tokens, open),
                _ => open + 1,
            };
        }
        if tokens.get(open).is_some_and(|token| token.text == "{") {
            let close = tokens[behind_bracket(tokens, open) - 1].line;
            let lines = (close - tokens[open].line).saturating_sub(1);
            functions.push((name.text, name.line, lines));
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_modules_do_not_count() {
        let source = |path: &str, text: &str| Source {
            path: format!("crates/x/src/{path}"),
            text: text.to_owned(),
        };
        let sources = [
            source("lib.rs", "mod a; #[cfg(test)] mod model;"),
            source("a/mod.rs", "mod b; #[cfg(test)] mod tests;"),
            source("a/b.rs", "#[cfg(test)] #[path = \"b_tests.rs\"] mod tests;"),
            source("a/b_tests.rs", ""),
            source("a/tests.rs", ""),
            source("model/mod.rs", "mod part;"),
            source("model/part.rs", ""),
        ];
        let code = code(&sources);
        let modules: Vec<_> = code.iter().map(|file| file.module.join("::")).collect();
        assert_eq!(modules, ["", "a", "a::b"]);
    }

    #[test]
    fn lines_between_the_braces_of_a_function() {
        let text = "fn a() {}\n\nfn b(c: [u8; 2])\nwhere\n    u8: Copy,\n{\n    c;\n\n}\ntrait D {\n    fn e();\n}\n";
        let source = Source {
            path: "crates/x/src/lib.rs".to_owned(),
            text: text.to_owned(),
        };
        let code = code(std::slice::from_ref(&source));
        assert_eq!(functions(&code[0]), [("a", 1, 0), ("b", 3, 2)]);
    }
}
