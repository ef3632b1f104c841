//! The modules of a crate: what each defines, imports and names.

use std::collections::{BTreeSet, HashMap};

use crate::source::Code;
use crate::tokens::{Token, behind_bracket, follows, is_name};

/// One module, with a file of its own or within another's.
#[derive(Debug, Default)]
pub(crate) struct Module<'a> {
    pub(crate) path: Vec<&'a str>,
    pub(crate) file: usize,
    /// Items other than modules.
    pub(crate) items: BTreeSet<&'a str>,
    pub(crate) imports: Vec<Import<'a>>,
    /// Paths of two segments and more that stand in it outside imports.
    pub(crate) paths: Vec<Vec<&'a str>>,
    /// All names that stand in it outside imports.
    pub(crate) names: BTreeSet<&'a str>,
    /// The macros that it invokes by their bare names.
    pub(crate) invoked: BTreeSet<&'a str>,
}

/// One leaf of a `use` tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import<'a> {
    /// Without the `*` of a glob.
    pub(crate) path: Vec<&'a str>,
    /// The name that it binds; `None` for a glob.
    pub(crate) name: Option<&'a str>,
    /// Whether others see it: then it may be there for them alone.
    pub(crate) is_re_export: bool,
}

/// The modules of a crate by their paths, and the files in which macros are defined.
#[derive(Debug, Default)]
pub(crate) struct Modules<'a> {
    pub(crate) list: Vec<Module<'a>>,
    pub(crate) by_path: HashMap<Vec<&'a str>, usize>,
    pub(crate) macros: HashMap<&'a str, usize>,
}

impl<'a> Modules<'a> {
    pub(crate) fn read(files: &[Code<'a>]) -> Self {
        let mut modules = Self::default();
        for (file, code) in files.iter().enumerate() {
            modules.read_module(file, code.module.clone(), &code.tokens);
        }
        modules
    }

    fn read_module(&mut self, file: usize, path: Vec<&'a str>, tokens: &[Token<'a>]) {
        let mut module = Module {
            path: path.clone(),
            file,
            ..Module::default()
        };
        let (mut at, mut depth) = (0, 0_usize);
        while at < tokens.len() {
            let text = tokens[at].text;
            match text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                "use" if is_import(tokens, at) => {
                    let first = module.imports.len();
                    let is_re_export = at > 0 && matches!(tokens[at - 1].text, "pub" | ")");
                    at = read_import(tokens, at + 1, &[], &mut module.imports);
                    for import in &mut module.imports[first..] {
                        import.is_re_export = is_re_export;
                    }
                    continue;
                }
                "mod" if depth == 0 && follows(tokens, at + 1, "{") => {
                    let end = behind_bracket(tokens, at + 2);
                    let inner = [&path[..], &[tokens[at + 1].text]].concat();
                    self.read_module(file, inner, &tokens[at + 3..end - 1]);
                    at = end;
                    continue;
                }
                "macro_rules" if follows(tokens, at, "!") && at + 2 < tokens.len() => {
                    self.macros.insert(tokens[at + 2].text, file);
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static"
                    if depth == 0 || depth == 1 && in_macro(tokens, at) =>
                {
                    module.items.extend(defined(tokens, at));
                }
                _ => {}
            }
            if is_name(text) {
                at = read_name(tokens, at, &mut module);
            } else {
                at += 1;
            }
        }
        self.by_path.insert(path, self.list.len());
        self.list.push(module);
    }
}

/// Not the `use<..>` of a type.
fn is_import(tokens: &[Token<'_>], at: usize) -> bool {
    !follows(tokens, at, "<")
}

/// Whether the innermost open bracket before `at` is that of a macro's invocation, such as `pin_project!`.
fn in_macro(tokens: &[Token<'_>], at: usize) -> bool {
    let mut closed = 0;
    for before in (0..at).rev() {
        match tokens[before].text {
            ")" | "]" | "}" => closed += 1,
            "(" | "[" | "{" if closed > 0 => closed -= 1,
            "(" | "[" | "{" => return before > 0 && tokens[before - 1].text == "!",
            _ => {}
        }
    }
    false
}

/// The name behind `struct`, `fn` and the like; qualifiers stand between `const` and `fn`.
fn defined<'a>(tokens: &[Token<'a>], at: usize) -> Option<&'a str> {
    let name = tokens.get(at + 1)?.text;
    let qualifies = matches!(name, "fn" | "unsafe" | "async" | "extern" | "mut" | "_");
    (is_name(name) && !qualifies).then_some(name)
}

/// Reads a `use` tree behind `prefix`, up to and with its `;`, `,` or closing brace.
fn read_import<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    prefix: &[&'a str],
    imports: &mut Vec<Import<'a>>,
) -> usize {
    let mut path = prefix.to_vec();
    let mut name = None;
    while at < tokens.len() {
        match tokens[at].text {
            "{" => {
                let end = behind_bracket(tokens, at);
                at += 1;
                while at < end - 1 {
                    at = read_import(&tokens[..end - 1], at, &path, imports);
                }
                at = end;
                // The tree ends with its braces.
                path.clear();
            }
            "*" => {
                imports.push(Import {
                    path: std::mem::take(&mut path),
                    name: None,
                    is_re_export: false,
                });
                at += 1;
            }
            "as" => {
                name = tokens.get(at + 1).map(|token| token.text);
                at += 2;
            }
            "," | ";" => {
                at += 1;
                break;
            }
            text => {
                if is_name(text) {
                    path.push(text);
                }
                at += 1;
            }
        }
    }
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    if let Some(last) = path.last() {
        let name = Some(name.unwrap_or(last));
        imports.push(Import {
            path,
            name,
            is_re_export: false,
        });
    }
    at
}

/// Reads the path that begins at `at`, and returns the index behind its first segment, because names within a path are
/// names, too.
fn read_name<'a>(tokens: &[Token<'a>], at: usize, module: &mut Module<'a>) -> usize {
    let text = tokens[at].text;
    module.names.insert(text);
    let before = at.checked_sub(1).map(|before| tokens[before].text);
    if matches!(before, Some("::" | ".")) {
        return at + 1;
    }
    let mut path = vec![text];
    let mut end = at;
    while follows(tokens, end, "::")
        && let Some(next) = tokens.get(end + 2)
        && is_name(next.text)
    {
        path.push(next.text);
        end += 2;
    }
    if path.len() > 1 {
        module.paths.push(path);
    } else if follows(tokens, at, "!") && !follows(tokens, at + 1, "=") {
        module.invoked.insert(text);
    }
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn imports(source: &str) -> Vec<String> {
        let tokens = tokens(source);
        let mut imports = Vec::new();
        assert_eq!(read_import(&tokens, 1, &[], &mut imports), tokens.len());
        imports
            .iter()
            .map(|import| format!("{} {}", import.path.join("::"), import.name.unwrap_or("*")))
            .collect()
    }

    #[test]
    fn leaves_of_a_use_tree() {
        assert_eq!(imports("use a;"), ["a a"]);
        assert_eq!(imports("use super::a::B as C;"), ["super::a::B C"]);
        assert_eq!(imports("use a::*;"), ["a *"]);
        assert_eq!(
            imports("use crate::a::{self, B, c::{D as E, f::*,}, g::H};"),
            [
                "crate::a a",
                "crate::a::B B",
                "crate::a::c::D E",
                "crate::a::c::f *",
                "crate::a::g::H H"
            ]
        );
        assert_eq!(imports("use {a::B, c::D};"), ["a::B B", "c::D D"]);
    }
}
