//! Matching one rule: `*` stands for any bytes, a `$` at the end for the end of the URL (RFC 9309, 2.2.3).
//!
//! The parts between wildcards are looked for from left to right, each as early as it occurs, which decides without
//! going back. The time is linear in the bytes of rule and URL together, whatever they are.

use crate::canon::{self, Target};

/// Whether `pattern` matches `url`. Both are in canonical form; `url` ends in the end mark `$`.
pub(crate) fn matches(pattern: &[u8], url: &[u8]) -> bool {
    let mut parts = pattern.split(|&byte| byte == b'*');
    let Some(mut rest) = parts.next().and_then(|first| url.strip_prefix(first)) else {
        return false;
    };
    for part in parts {
        match find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Where `needle` first occurs in `haystack`.
fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let Some((&first, tail)) = needle.split_first() else {
        return Some(0);
    };
    let last = haystack.len().checked_sub(needle.len())?;
    // A raw `$` is the end mark and stands nowhere else.
    if needle.last() == Some(&b'$') {
        return haystack.ends_with(needle).then_some(last);
    }
    // Plain search is the fastest for real rules. Inputs built to make it quadratic use up the effort it is granted
    // and go on with a search that cannot be.
    let mut effort = 2 * haystack.len() + 64;
    for at in 0..=last {
        if haystack[at] != first {
            continue;
        }
        let here = &haystack[at + 1..];
        let equal = here.iter().zip(tail).take_while(|(a, b)| a == b).count();
        if equal == tail.len() {
            return Some(at);
        }
        match effort.checked_sub(equal) {
            Some(left) => effort = left,
            None => return find_linear(&haystack[at..], needle).map(|found| at + found),
        }
    }
    None
}

/// The search of the standard library for text, which is linear in both.
fn find_linear(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let text = |bytes| str::from_utf8(bytes).expect("canonical form is ASCII");
    text(haystack).find(text(needle))
}

/// A path pattern of its own, matched as a rule of robots.txt is. For records that carry a path, such as
/// `Content-Usage`.
///
/// ```
/// use etiquette_robots::Pattern;
///
/// let pattern = Pattern::new(b"/*.php$");
/// assert!(pattern.matches(b"/index.php"));
/// assert!(!pattern.matches(b"/index.php?a=b"));
/// assert_eq!(pattern.specificity(), 7);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    canonical: Box<[u8]>,
}

impl Pattern {
    /// Reads `text`. Never fails: a pattern that does not start with `/` or `*` matches nothing.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let mut canonical = Vec::with_capacity(text.len());
        canon::rule(text, &mut canonical);
        Self {
            canonical: canonical.into(),
        }
    }

    /// Whether the pattern matches a path and query, in time linear in both. An empty pattern matches nothing, as an
    /// empty rule does.
    #[must_use]
    pub fn matches(&self, path_and_query: &[u8]) -> bool {
        !self.canonical.is_empty() && matches(&self.canonical, Target::new(path_and_query).bytes())
    }

    /// The bytes of the pattern in percent-encoded form. The pattern with the most decides (RFC 9309, 2.2.2).
    #[must_use]
    pub fn specificity(&self) -> u32 {
        self.canonical.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn check(pattern: &str, url: &str) -> bool {
        Pattern::new(pattern.as_bytes()).matches(url.as_bytes())
    }

    #[test]
    fn wildcards_and_end() {
        assert!(check("/a*b*c", "/axbxbxc-"));
        assert!(!check("/a*b*c", "/acb"));
        assert!(check("/a*$", "/a"));
        assert!(check("*", "/"));
        assert!(check("/a$b", "/a$b"));
        assert!(check("/a$b", "/a%24bc"));
        assert!(!check("/a$b", "/a"));
        assert!(check("/*.php$", "/x.php.php"));
        assert!(!check("/*.php$", "/x.php5"));
        assert!(!check("", "/"));
        assert!(!check("a", "/a"));
    }

    #[test]
    fn both_searches_find_the_same() {
        let alphabet = b"ab";
        let word = |mut number: usize, length: usize| -> Vec<u8> {
            (0..length)
                .map(|_| {
                    let byte = alphabet[number % 2];
                    number /= 2;
                    byte
                })
                .collect()
        };
        for needle_length in 1..=4 {
            for needle in 0..1 << needle_length {
                let needle = word(needle, needle_length);
                for haystack in 0..1 << 8 {
                    let haystack = word(haystack, 8);
                    let expected = haystack.windows(needle.len()).position(|w| w == needle);
                    assert_eq!(find(&haystack, &needle), expected);
                    assert_eq!(find_linear(&haystack, &needle), expected);
                }
            }
        }
    }

    #[test]
    fn a_pattern_built_to_be_slow_is_not() {
        let url = vec![b'a'; 100_000];
        let mut pattern = b"*".to_vec();
        pattern.extend(vec![b'a'; 50_000]);
        pattern.push(b'b');
        let started = Instant::now();
        assert!(!Pattern::new(&pattern).matches(&url));
        // Quadratic would be 2.5 billion steps, many seconds in a debug build.
        assert!(
            started.elapsed().as_millis() < 500,
            "{:?}",
            started.elapsed()
        );
    }
}
