//! The public API of each published crate as text, one item a line, in `crates/*/public-api.txt`.
//!
//! Without arguments it compares the files with the sources and fails where they differ. With `--write` it writes them.
//!
//! Listed is what a crate offers with all its features but `unstable`, without `#[doc(hidden)]` items, blanket and auto
//! trait impls. Of a trait's impl there are the associated types and constants; its methods are as the trait says.
//!
//! The items come from rustdoc's JSON, whose format changes with the toolchain. Where it is not the one that this program
//! reads, it says so and succeeds.

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustdoc_types::{Crate, Impl, ItemEnum};
use serde_json::Value;

/// Names the rustdoc to run. Where it is set, this program stands in for rustdoc.
const RUSTDOC: &str = "PUBLIC_API_LISTING_RUSTDOC";

/// The feature for internals that the workspace's crates share, which semver does not cover.
const UNSTABLE: &str = "unstable";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A crate to list.
struct Package {
    name: String,
    features: Vec<String>,
    listing: PathBuf,
    json: PathBuf,
}

/// What rustdoc's JSON says.
enum Listing {
    Items(String),
    /// It is in a format that is not read, this one.
    Unreadable(u64),
}

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    let ended = match env::var_os(RUSTDOC) {
        Some(rustdoc) => run_rustdoc(rustdoc, &args),
        None => match args.as_slice() {
            [] => list(false),
            [flag] if flag == "--write" => list(true),
            _ => Err("usage: public-api-listing [--write]".into()),
        },
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

/// Runs rustdoc with its unstable options allowed.
///
/// Cargo starts this program in place of rustdoc, because with `RUSTC_BOOTSTRAP` in cargo's own environment the build
/// scripts of dependencies would see it too, and many dependencies be built again, now and at the next build without it.
fn run_rustdoc(rustdoc: OsString, args: &[OsString]) -> Result<ExitCode> {
    let status = Command::new(rustdoc)
        .args(args)
        .env("RUSTC_BOOTSTRAP", "1")
        .status()?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Writes the listing of each published crate, or compares it with the one that is there.
fn list(write: bool) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut outdated = false;
    for package in packages()? {
        document(&package)?;
        let now = match listing(&package.json)? {
            Listing::Items(items) => items,
            Listing::Unreadable(format) => {
                writeln!(
                    out,
                    "skipped: this rustdoc writes format {format} of its JSON, format {} is read",
                    rustdoc_types::FORMAT_VERSION
                )?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        if write {
            fs::write(&package.listing, &now)?;
            writeln!(out, "{}: {} items", package.name, now.lines().count())?;
            continue;
        }
        match fs::read_to_string(&package.listing) {
            Ok(before) if before == now => continue,
            Ok(before) => writeln!(out, "{}:\n{}", package.name, difference(&before, &now))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                writeln!(out, "{}:\nnot listed yet\n", package.name)?;
            }
            Err(error) => return Err(error.into()),
        }
        outdated = true;
    }
    if !outdated {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        out,
        "The public API is not as listed (- listed, + in the sources). If the change is meant, run\n\
         cargo run -p public-api-listing -- --write"
    )?;
    Ok(ExitCode::FAILURE)
}

/// The workspace's packages that may be published.
fn packages() -> Result<Vec<Package>> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let documented = Path::new(text(&metadata["target_directory"])?).join("doc");
    let all = metadata["packages"]
        .as_array()
        .ok_or("no packages in cargo's metadata")?;
    let mut packages = Vec::new();
    for package in all {
        // `publish = false` is an empty list of registries.
        if package["publish"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        let name = text(&package["name"])?.to_owned();
        let features = package["features"]
            .as_object()
            .ok_or("no features in cargo's metadata")?;
        let manifest = Path::new(text(&package["manifest_path"])?);
        packages.push(Package {
            features: features
                .keys()
                .filter(|feature| *feature != UNSTABLE)
                .cloned()
                .collect(),
            listing: manifest.with_file_name("public-api.txt"),
            json: documented.join(format!("{}.json", name.replace('-', "_"))),
            name,
        });
    }
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(packages)
}

fn text(value: &Value) -> Result<&str> {
    value
        .as_str()
        .ok_or_else(|| format!("a string is expected in cargo's metadata, not {value}").into())
}

/// The cargo that runs this program, without what it tells this program about its package: build scripts that ask for such
/// variables would run again.
fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    for (name, _) in env::vars_os() {
        let told = name.to_string_lossy();
        if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Lets rustdoc write its JSON.
fn document(package: &Package) -> Result<()> {
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    let status = cargo()
        .env(RUSTDOC, rustdoc)
        .env("RUSTDOC", env::current_exe()?)
        // Another target would have another folder.
        .env_remove("CARGO_BUILD_TARGET")
        .args(["rustdoc", "--quiet", "--lib", "--no-default-features"])
        .args(["--package", &package.name])
        .args(["--features", &package.features.join(",")])
        .args(["--", "-Zunstable-options", "--output-format=json"])
        .status()?;
    if !status.success() {
        return Err(format!("rustdoc failed on {}", package.name).into());
    }
    Ok(())
}

/// The items of a crate, one a line.
fn listing(json: &Path) -> Result<Listing> {
    let document: Value = serde_json::from_slice(&fs::read(json)?)?;
    let format = document["format_version"]
        .as_u64()
        .ok_or("rustdoc's JSON names no format")?;
    if format != u64::from(rustdoc_types::FORMAT_VERSION) {
        return Ok(Listing::Unreadable(format));
    }
    let index = serde_json::from_value::<Crate>(document)?.index;
    let items = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    let mut lines = String::new();
    for item in items.items() {
        let is_method = matches!(
            index.get(&item.id()).map(|item| &item.inner),
            Some(ItemEnum::Function(_))
        );
        let of_trait = item.parent_id().is_some_and(|parent| {
            matches!(
                index.get(&parent).map(|item| &item.inner),
                Some(ItemEnum::Impl(Impl {
                    trait_: Some(_),
                    ..
                }))
            )
        });
        let line = item.to_string();
        let of_compiler = line.contains("::StructuralPartialEq ") || line.contains("::__private::");
        if !(is_method && of_trait || of_compiler) {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    Ok(Listing::Items(lines))
}

/// The lines that only one of two listings has. Both are in the same order.
fn difference(before: &str, now: &str) -> String {
    let known: HashSet<&str> = before.lines().collect();
    let kept: HashSet<&str> = now.lines().collect();
    let mut now = now.lines().peekable();
    let mut difference = String::new();
    let mut tell = |mark: char, line: &str| {
        difference.push_str(&format!("{mark} {line}\n"));
    };
    for line in before.lines() {
        if !kept.contains(line) {
            tell('-', line);
            continue;
        }
        while let Some(added) = now.next_if(|line| !known.contains(line)) {
            tell('+', added);
        }
        now.next_if_eq(&line);
    }
    for added in now.filter(|line| !known.contains(line)) {
        tell('+', added);
    }
    if difference.is_empty() {
        difference.push_str("the same items in another order\n");
    }
    difference
}
