//! Which file takes which names from which other, and the loops among them.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::Modules;
use crate::source::Code;

/// What ties files: from the first to the second, by these names.
pub(crate) type Ties<'a> = BTreeMap<(usize, usize), BTreeSet<&'a str>>;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target<'a> {
    Module(usize),
    /// Something that a file defines.
    Item(usize, &'a str),
    /// Something that another crate defines.
    Foreign,
}

/// The ties between the files of a crate. Who takes a name that is re-exported takes it from the file that defines it; the
/// file that re-exports it takes it only where it uses the name itself.
pub(crate) fn ties<'a>(files: &[Code<'a>]) -> Ties<'a> {
    let modules = Modules::read(files);
    let names = Names { modules: &modules };
    let mut ties = Ties::new();
    for (number, module) in modules.list.iter().enumerate() {
        let mut taken = Vec::new();
        for import in &module.imports {
            match import.name {
                Some(name) if import.is_re_export && !module.names.contains(name) => {}
                Some(_) => taken.push(names.follow(number, &import.path, 0)),
                None => taken.extend(names.taken_by_glob(number, &import.path)),
            }
        }
        for path in &module.paths {
            taken.push(names.follow(number, path, 0));
        }
        for name in &module.invoked {
            let file = modules.macros.get(name);
            taken.extend(file.map(|file| Target::Item(*file, name)));
        }
        for target in taken {
            if let Target::Item(file, name) = target
                && file != module.file
            {
                ties.entry((module.file, file)).or_default().insert(name);
            }
        }
    }
    tie_to_children(files, &mut ties);
    ties
}

/// `mod x;` is a tie where the child takes something that its parent defines.
fn tie_to_children(files: &[Code<'_>], ties: &mut Ties<'_>) {
    for (child, file) in files.iter().enumerate() {
        let Some((_, above)) = file.module.split_last() else {
            continue;
        };
        if let Some(parent) = files.iter().position(|file| file.module == above)
            && ties.contains_key(&(child, parent))
        {
            ties.entry((parent, child)).or_default().insert("mod");
        }
    }
}

/// Looks names up as the compiler does, within one crate.
struct Names<'m, 'a> {
    modules: &'m Modules<'a>,
}

/// Re-exports are followed so far; beyond it they are a loop of their own.
const DEEPEST: usize = 16;

impl<'a> Names<'_, 'a> {
    /// What `path` names in the module `from`.
    fn follow(&self, from: usize, path: &[&'a str], depth: usize) -> Target<'a> {
        let mut at = from;
        for (index, segment) in path.iter().enumerate() {
            let above = &self.modules.list[at].path;
            let target = match *segment {
                "crate" => self.module(&[]),
                "self" => Some(Target::Module(at)),
                "super" => self.module(&above[..above.len().saturating_sub(1)]),
                name => self
                    .look_up(at, name, index + 1 == path.len(), depth)
                    // A macro made it, or it is no name of a module but of a variable's type or of a crate.
                    .or((index > 0).then_some(Target::Item(self.modules.list[at].file, name))),
            };
            match target {
                Some(Target::Module(module)) => at = module,
                Some(target) => return target,
                None => return Target::Foreign,
            }
        }
        Target::Module(at)
    }

    fn module(&self, path: &[&'a str]) -> Option<Target<'a>> {
        self.modules.by_path.get(path).copied().map(Target::Module)
    }

    /// What `name` is within a module. A module and an item may have one name: the `item` is meant at the end of a path.
    fn look_up(&self, at: usize, name: &'a str, item: bool, depth: usize) -> Option<Target<'a>> {
        let module = &self.modules.list[at];
        if depth > DEEPEST {
            return None;
        }
        let mut found = Vec::new();
        if module.items.contains(name) {
            found.push(Target::Item(module.file, name));
        }
        found.extend(self.module(&[&module.path[..], &[name]].concat()));
        for import in &module.imports {
            if import.name == Some(name) && import.path != [name] {
                found.push(self.follow(at, &import.path, depth + 1));
            }
        }
        for import in module.imports.iter().filter(|import| import.name.is_none()) {
            if !found.is_empty() {
                break;
            }
            match self.follow(at, &import.path, depth + 1) {
                Target::Module(other) if other != at => {
                    found.extend(self.look_up(other, name, item, depth + 1));
                }
                _ => {}
            }
        }
        let is_meant = |target: &&Target<'_>| matches!(target, Target::Module(_)) != item;
        let meant = found.iter().find(is_meant);
        meant.or(found.first()).copied()
    }

    /// What a module takes by `use path::*`: of what is visible there, the names that stand in the module.
    fn taken_by_glob(&self, from: usize, path: &[&'a str]) -> Vec<Target<'a>> {
        match self.follow(from, path, 0) {
            Target::Module(other) if other != from => {
                let module = &self.modules.list[from];
                let imported: BTreeSet<_> =
                    module.imports.iter().filter_map(|it| it.name).collect();
                let inherited = module
                    .names
                    .iter()
                    .filter(|name| !module.items.contains(*name) && !imported.contains(*name));
                inherited
                    .filter_map(|name| self.look_up(other, name, true, 0))
                    .collect()
            }
            item @ Target::Item(..) => vec![item],
            _ => Vec::new(),
        }
    }
}

/// The sets of files that take names from each other in a loop, each in order.
pub(crate) fn loops(files: usize, ties: &Ties<'_>) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); files];
    for (from, to) in ties.keys() {
        next[*from].push(*to);
    }
    let reached: Vec<_> = (0..files).map(|from| reachable(from, &next)).collect();
    let mut loops: Vec<Vec<usize>> = Vec::new();
    for file in 0..files {
        let known = loops.iter().any(|members| members.contains(&file));
        if !known && reached[file].contains(&file) {
            let back = |other: &usize| reached[*other].contains(&file);
            loops.push(reached[file].iter().copied().filter(back).collect());
        }
    }
    loops
}

/// What can be reached from a file in one step and more.
fn reachable(from: usize, next: &[Vec<usize>]) -> BTreeSet<usize> {
    let (mut reached, mut waiting) = (BTreeSet::new(), next[from].clone());
    while let Some(file) = waiting.pop() {
        if reached.insert(file) {
            waiting.extend(&next[file]);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Source, code};

    /// The ties of a crate, each as `from -> to: names`.
    fn told(files: &[(&str, &str)]) -> (Vec<String>, usize) {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source {
                path: format!("crates/x/src/{path}"),
                text: (*text).to_owned(),
            })
            .collect();
        let code = code(&sources);
        let ties = ties(&code);
        let name = |file: usize| code[file].path.trim_start_matches("crates/x/src/");
        let lines = ties.iter().map(|((from, to), names)| {
            let names: Vec<_> = names.iter().copied().collect();
            format!("{} -> {}: {}", name(*from), name(*to), names.join(" "))
        });
        (lines.collect(), loops(code.len(), &ties).len())
    }

    #[test]
    fn a_re_export_counts_for_the_file_that_defines_the_name() {
        let (ties, loops) = told(&[
            ("lib.rs", "mod a; mod b; pub use a::Door;"),
            (
                "a/mod.rs",
                "mod c; pub use self::c::Door as Gate; pub use c::*;",
            ),
            (
                "a/c.rs",
                "pub struct Door; pub fn open() { crate::b::Key::new() }",
            ),
            (
                "b.rs",
                "use crate::a::Gate; pub struct Key; fn a() { super::a::open() }",
            ),
        ]);
        let expected = ["a/c.rs -> b.rs: Key", "b.rs -> a/c.rs: Door open"];
        assert_eq!(ties, expected);
        assert_eq!(loops, 1);
        let parent = "mod c; pub use c::Door; fn enter(_: Door) {}";
        let (ties, _) = told(&[("a/mod.rs", parent), ("a/c.rs", "pub struct Door;")]);
        assert_eq!(ties, ["a/mod.rs -> a/c.rs: Door"]);
    }

    #[test]
    fn a_child_that_takes_what_its_parent_defines_is_a_loop() {
        let parent = (
            "a/mod.rs",
            "mod c; pub const LONGEST: u8 = 1; fn unused() {}",
        );
        let crate_root = ("lib.rs", "mod a;");
        let (ties, loops) = told(&[crate_root, parent, ("a/c.rs", "use super::LONGEST;")]);
        let expected = ["a/mod.rs -> a/c.rs: mod", "a/c.rs -> a/mod.rs: LONGEST"];
        assert_eq!((&ties[..], loops), (&expected.map(String::from)[..], 1));
        let (ties, loops) = told(&[crate_root, parent, ("a/c.rs", "use std::fmt;")]);
        assert_eq!((ties, loops), (vec![], 0));
    }

    #[test]
    fn globs_aliases_modules_and_macros() {
        let (ties, loops) = told(&[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            (
                "a.rs",
                "use super::b::*; use crate::c::{self as sea, Kind::*}; fn x(_: Shell) { sea::swim() }",
            ),
            (
                "b.rs",
                "pub struct Shell; pub struct Sand; #[cfg(test)] mod tests { use crate::a::x; }",
            ),
            (
                "c.rs",
                "pub enum Kind { Salt } pub fn swim() { crate::d::far!() }",
            ),
            (
                "d.rs",
                "macro_rules! far { () => { $crate::a::x() } } pub(crate) use far; pub use std::fmt;",
            ),
        ]);
        let expected = [
            "a.rs -> b.rs: Shell",
            "a.rs -> c.rs: Kind swim",
            "c.rs -> d.rs: far",
            "d.rs -> a.rs: x",
        ];
        assert_eq!(ties, expected);
        assert_eq!(loops, 1);
    }
}
