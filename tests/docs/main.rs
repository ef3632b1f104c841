//! The pages that newcomers read: what they link to is there.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages at the root and of each crate, as far as they exist.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .iter()
        .map(|name| root.join(name))
        .collect();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        pages.push(entry.unwrap().path().join("README.md"));
    }
    pages.retain(|page| page.is_file());
    pages
}

/// The targets of the links of a page, blocks of code left out.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for (number, outside) in text.split("```").enumerate() {
        if number % 2 == 1 {
            continue;
        }
        for rest in outside.split("](").skip(1) {
            if let Some(end) = rest.find(')') {
                links.push(&rest[..end]);
            }
        }
    }
    links
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut checked = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let file = link.split('#').next().unwrap_or_default();
            if link.contains("://") || link.starts_with("mailto:") || file.is_empty() {
                continue;
            }
            checked += 1;
            if !page.with_file_name(file).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
    assert!(checked > 0, "no link was found");
}

/// The table "Where it is decided" of the README names a constant or function of each file that it points into.
#[test]
fn what_decides_is_in_the_file_that_the_readme_names() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, section) = readme.split_once("## Where it is decided").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut checked = 0;
    for row in section.lines().filter(|line| line.starts_with('|')) {
        let named = row
            .rsplit_once(", in `")
            .or_else(|| row.rsplit_once(", at `"));
        let (Some((_, name)), Some(file)) = (named, links(row).into_iter().next_back()) else {
            continue;
        };
        let name = name.split('`').next().unwrap();
        let name = name.rsplit("::").next().unwrap();
        let source = fs::read_to_string(root().join(file)).unwrap();
        let defined = [format!("const {name}:"), format!("fn {name}(")];
        assert!(
            defined.iter().any(|text| source.contains(text)),
            "{file} does not define {name}"
        );
        checked += 1;
    }
    assert!(checked >= 3, "{checked} rows name what decides");
}

#[test]
fn links_in_code_are_none() {
    let page = "[a](b.md) and [c](https://site.example/)\n```rust\n[d](e.md)\n```\n[f](g.md#h)";
    assert_eq!(links(page), ["b.md", "https://site.example/", "g.md#h"]);
}
