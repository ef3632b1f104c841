//! RFC 9309 as it is written, without regard to speed: percent-encoded form, every rule tried, the longest wins.

/// A unit of a normalised path.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    /// A byte of the percent-encoded form.
    Byte(u8),
    /// `*` of a rule.
    Any,
    /// `$` at the end of a rule.
    End,
}

const UNRESERVED: &str = "-._~";
const RESERVED: &str = ":/?#[]@!$&'()*+,;=%";

/// 2.2.2: bytes outside the URI characters are encoded, unreserved ones decoded, reserved ones stay as they are.
fn normalise(text: &[u8], rule: bool) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        let escaped = (byte == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .map(|digits| u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap());
        at += if escaped.is_some() { 3 } else { 1 };
        let value = escaped.unwrap_or(byte);
        let c = value as char;
        let plain = value.is_ascii_alphanumeric() || UNRESERVED.contains(c);
        let delimiter = value.is_ascii() && RESERVED.contains(c) && c != '*' && c != '$';
        match escaped {
            None if c == '*' && rule => units.push(Unit::Any),
            None if c == '$' && rule && at == text.len() => units.push(Unit::End),
            None if delimiter => units.push(Unit::Byte(value)),
            _ if plain => units.push(Unit::Byte(value)),
            _ => units.extend(format!("%{value:02X}").bytes().map(Unit::Byte)),
        }
    }
    units
}

/// 2.2.3, by the set of places in the URL that each unit of the rule may have reached.
fn matches(rule: &[Unit], url: &[Unit]) -> bool {
    let mut places = vec![false; url.len() + 1];
    places[0] = true;
    for unit in rule {
        let mut next = vec![false; url.len() + 1];
        for at in 0..=url.len() {
            match unit {
                Unit::Any => next[at] = places[..=at].contains(&true),
                Unit::End => next[at] = places[at] && at == url.len(),
                Unit::Byte(_) => next[at] = at > 0 && places[at - 1] && url[at - 1] == *unit,
            }
        }
        places = next;
    }
    places.contains(&true)
}

/// Whether the rule matches, and its bytes.
pub(crate) fn pattern(rule: &[u8], url: &[u8]) -> (bool, u32) {
    let units = normalise(rule, true);
    let matches = !units.is_empty() && matches(&units, &normalise(url, false));
    (matches, units.len() as u32)
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) allowed: bool,
    /// Whether the deciding rule allows, and its line.
    pub(crate) rule: Option<(bool, u32)>,
}

struct Rule {
    allow: bool,
    units: Vec<Unit>,
    line: u32,
}

struct Group {
    names: Vec<String>,
    rules: Vec<Rule>,
}

pub(crate) struct File {
    groups: Vec<Group>,
}

impl File {
    pub(crate) fn read(file: &[u8]) -> Self {
        let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
        let mut unified: Vec<u8> = Vec::new();
        for (at, &byte) in file.iter().enumerate() {
            match byte {
                b'\r' if file.get(at + 1) == Some(&b'\n') => {}
                b'\r' => unified.push(b'\n'),
                _ => unified.push(byte),
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut names_go_on = false;
        for (number, line) in unified.split(|&byte| byte == b'\n').enumerate() {
            let line = line
                .split(|&byte| byte == b'#')
                .next()
                .unwrap()
                .trim_ascii();
            let (key, value) = match line.iter().position(|&byte| byte == b':') {
                Some(colon) => (&line[..colon], &line[colon + 1..]),
                None => {
                    let words: Vec<&[u8]> = line
                        .split(|byte| byte.is_ascii_whitespace())
                        .filter(|word| !word.is_empty())
                        .collect();
                    match words[..] {
                        [key, value] => (key, value),
                        _ => continue,
                    }
                }
            };
            let key = String::from_utf8_lossy(key.trim_ascii()).to_lowercase();
            let value = value.trim_ascii();
            match key.as_str() {
                // As real files spell it.
                "user-agent" | "useragent" | "user agent" => {
                    if !names_go_on {
                        groups.push(Group {
                            names: Vec::new(),
                            rules: Vec::new(),
                        });
                    }
                    names_go_on = true;
                    let name: String = value
                        .iter()
                        .map(|&byte| byte as char)
                        .take_while(|c| c.is_ascii_alphabetic() || "-_".contains(*c))
                        .collect();
                    let name = if value == b"*" || value.starts_with(b"* ") {
                        "*".to_owned()
                    } else {
                        name.to_lowercase()
                    };
                    groups.last_mut().unwrap().names.push(name);
                }
                "allow" | "disallow" | "disalow" => {
                    names_go_on = false;
                    if let Some(group) = groups.last_mut().filter(|_| !value.is_empty()) {
                        group.rules.push(Rule {
                            allow: key == "allow",
                            units: normalise(value, true),
                            line: number as u32 + 1,
                        });
                    }
                }
                _ => {}
            }
        }
        Self { groups }
    }

    pub(crate) fn check(&self, name: &str, url: &[u8]) -> Answer {
        let url = normalise(url, false);
        let for_name = |name: &str| -> Vec<&Group> {
            self.groups
                .iter()
                .filter(|group| group.names.iter().any(|own| own.eq_ignore_ascii_case(name)))
                .collect()
        };
        let mut groups = for_name(name);
        if groups.is_empty() {
            groups = for_name("*");
        }
        let decided = groups
            .iter()
            .flat_map(|group| &group.rules)
            .filter(|rule| matches(&rule.units, &url))
            .map(|rule| (rule.units.len(), rule.allow, std::cmp::Reverse(rule.line)))
            .max();
        Answer {
            allowed: decided.is_none_or(|(_, allow, _)| allow),
            rule: decided.map(|(_, allow, line)| (allow, line.0)),
        }
    }
}

pub(crate) fn check(file: &[u8], name: &str, url: &[u8]) -> Answer {
    File::read(file).check(name, url)
}
