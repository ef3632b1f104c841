//! A parsed robots.txt: parse once, ask for any crawler.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::canon::Target;
use crate::draft::{Draft, SectionId};
use crate::kept::{Hit, Kept};
use crate::lex;
use crate::record::{Record, RequestRate};
use crate::token::ProductToken;
use crate::unusable::Unusable;
use crate::url;
use crate::verdict::{Cause, GroupName, Rule, Verdict};

/// How much of a robots.txt is read unless more is asked for: 500 KiB, the least that RFC 9309, 2.5 lets a parser read.
pub const MAX_BYTES: usize = 512_000;

/// The most that [`RobotsBuilder::max_bytes`] can be raised to: 256 MiB.
pub const MAX_MAX_BYTES: usize = 1 << 28;

/// A parsed robots.txt (RFC 9309). Cloning shares it.
///
/// Parsing takes bytes as they came and never fails: what is no record is skipped. Only the first
/// [`MAX_BYTES`] count, up to the end of a line. A file without any rule, the default, allows everything.
///
/// ```
/// use etiquette_robots::{ProductToken, Robots};
///
/// let robots = Robots::parse(b"User-agent: *\nDisallow: /a\nCrawl-delay: 2\n\nUser-agent: OtherBot\nDisallow: /\n");
/// let token = ProductToken::try_from("ExampleBot")?;
/// let group = robots.group(&token);
/// assert!(group.check(b"/b").allowed());
/// assert!(!group.check(b"/a/b?c=d").allowed());
/// assert_eq!(group.crawl_delay(), Some(std::time::Duration::from_secs(2)));
/// assert!(!robots.names(&token));
/// # Ok::<(), etiquette_robots::InvalidToken>(())
/// ```
#[derive(Clone, Default)]
pub struct Robots(Arc<Kept>);

impl Robots {
    /// Reads a file and keeps the groups of all crawlers.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        Self::builder().parse(bytes)
    }

    /// Reads a file in another way than [`Robots::parse`] does.
    #[must_use]
    pub fn builder() -> RobotsBuilder {
        RobotsBuilder::default()
    }

    /// What holds for the crawler `token`: all groups that name it, taken together; without one, those for `*`;
    /// without those, an empty group (RFC 9309, 2.2.1).
    #[must_use]
    pub fn group(&self, token: &ProductToken) -> Group<'_> {
        self.group_of(std::slice::from_ref(token))
    }

    /// What holds for a crawler that answers to several tokens: all groups that name any of them, taken together;
    /// without one, those for `*`. The group bears the name of the first token that is named.
    #[must_use]
    pub fn group_of(&self, tokens: &[ProductToken]) -> Group<'_> {
        let mut named = tokens
            .iter()
            .filter_map(|token| Some((token, self.0.sections_of(token.as_str().as_bytes())?)));
        if let Some((token, sections)) = named.next() {
            let mut sections = Cow::Borrowed(sections);
            for (_, more) in named {
                sections.to_mut().extend_from_slice(more);
            }
            if let Cow::Owned(sections) = &mut sections {
                sections.sort_unstable();
                sections.dedup();
            }
            return Group::new(self, GroupName::Token(token.clone()), sections);
        }
        if tokens.iter().any(|token| !self.0.keeps(token)) {
            return Group {
                closed: true,
                ..Group::new(self, GroupName::None, Cow::Borrowed(&[]))
            };
        }
        match self.0.sections_of(b"*") {
            Some(sections) => Group::new(self, GroupName::Star, Cow::Borrowed(sections)),
            None => Group::new(self, GroupName::None, Cow::Borrowed(&[])),
        }
    }

    /// Whether a user-agent line names `token`. `*` names nobody.
    #[must_use]
    pub fn names(&self, token: &ProductToken) -> bool {
        self.0.sections_of(token.as_str().as_bytes()).is_some()
    }

    /// The groups that name `token`, taken together; `None` where none does, whatever there is for `*`.
    #[must_use]
    pub fn named_group(&self, token: &ProductToken) -> Option<Group<'_>> {
        self.names(token).then(|| self.group(token))
    }

    /// All names on user-agent lines that were kept, `*` included, each once and sorted.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.0.names()
    }

    /// The values of the Sitemap lines as the file has them, with their line numbers.
    pub fn sitemaps(&self) -> impl Iterator<Item = (Cow<'_, str>, u32)> {
        self.0
            .sitemaps()
            .map(|(value, line)| (String::from_utf8_lossy(value), line))
    }

    /// The sitemaps as absolute http or https URLs, seen from where the file was read. They may lead to other hosts.
    /// Lines that give no such URL are left out.
    pub fn sitemap_urls(&self, robots_url: &str) -> impl Iterator<Item = String> {
        self.sitemaps()
            .filter_map(move |(value, _)| url::resolve(robots_url, &value))
    }

    /// Records before the first user-agent line, such as Host.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.0.records(None)
    }

    /// Why the file seems to be something else than a robots.txt, if it does. Its rules are none then, so everything is
    /// allowed (RFC 9309, 2.3.1.1); whoever reads the answer for an operator should say so.
    #[must_use]
    pub fn unusable(&self) -> Option<Unusable> {
        self.0.unusable
    }

    /// Whether the file was longer than what is read.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.0.cut
    }

    /// How many rules have more wildcards than are matched, or came after too many rules with wildcards. Of those an
    /// Allow is dropped, and a Disallow closes all that starts as it does up to its first wildcard too many.
    #[must_use]
    pub fn rules_over_limit(&self) -> u32 {
        self.0.over_limit
    }

    /// Bytes of memory that the file takes up, shared by all clones.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size()
    }
}

impl fmt::Debug for Robots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Robots")
            .field("names", &self.0.names().count())
            .field("size", &self.size())
            .field("unusable", &self.unusable())
            .finish_non_exhaustive()
    }
}

/// How to read a robots.txt.
#[derive(Debug, Clone, Default)]
pub struct RobotsBuilder {
    tokens: Option<Vec<ProductToken>>,
    max_bytes: usize,
}

impl RobotsBuilder {
    /// Keeps only the groups that name one of `tokens`, and those for `*`: less memory, and few sections to look into
    /// whatever the file does. Asking about another token later disallows everything, with
    /// [`Cause::NotParsedFor`].
    #[must_use]
    pub fn tokens(mut self, tokens: impl IntoIterator<Item = ProductToken>) -> Self {
        self.tokens = Some(tokens.into_iter().collect());
        self
    }

    /// How many bytes count. Default and least [`MAX_BYTES`], at most [`MAX_MAX_BYTES`]. What lies beyond is not
    /// read, and neither is the line that reaches beyond. Whoever cuts a body before parsing should leave at least one
    /// byte more, so that the cut is seen.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Reads a file.
    #[must_use]
    pub fn parse(&self, bytes: &[u8]) -> Robots {
        let most = self.max_bytes.clamp(MAX_BYTES, MAX_MAX_BYTES);
        let counted = lex::cut(bytes, most);
        let text = lex::without_byte_order_mark(counted);
        let draft = Draft::read(text, self.tokens.as_deref());
        let mut kept = Kept::build(&draft);
        kept.wanted = self.tokens.as_deref().map(Into::into);
        kept.cut = counted.len() < bytes.len();
        kept.unusable = (draft.content && !draft.recognised).then(|| Unusable::of(text));
        Robots(Arc::new(kept))
    }
}

/// What holds for one crawler.
#[derive(Debug, Clone)]
pub struct Group<'r> {
    robots: &'r Robots,
    name: GroupName,
    sections: Cow<'r, [SectionId]>,
    /// The file was not parsed for this crawler.
    closed: bool,
}

impl<'r> Group<'r> {
    const fn new(robots: &'r Robots, name: GroupName, sections: Cow<'r, [SectionId]>) -> Self {
        Self {
            robots,
            name,
            sections,
            closed: false,
        }
    }

    /// Whether `path_and_query`, such as `/a/b?c=d`, may be fetched.
    ///
    /// The most specific rule that matches decides, and of equal ones Allow (RFC 9309, 2.2.2). Percent-encoding is
    /// normalised on both sides. A fragment is ignored. No allocation for URLs up to 255 bytes.
    #[must_use]
    pub fn check(&self, path_and_query: &[u8]) -> Verdict {
        let verdict = |cause, rule| Verdict::new(cause, rule, self.name.clone());
        let target = Target::new(path_and_query);
        if target.bytes() == b"/robots.txt$" {
            return verdict(Cause::RobotsTxt, None);
        }
        if self.closed {
            return verdict(Cause::NotParsedFor, None);
        }
        let kept = &self.robots.0;
        let best: Option<Hit> = self
            .sections
            .iter()
            .filter_map(|&section| kept.best(section, &target))
            .reduce(|best, hit| hit.better(Some(best)));
        match best {
            Some(hit) => verdict(
                Cause::Rule,
                Some(Rule::new(Arc::clone(&self.robots.0), hit.at)),
            ),
            None if self.name == GroupName::None => verdict(Cause::NoGroup, None),
            None => verdict(Cause::NoRule, None),
        }
    }

    /// The token that was asked for where the file names it, `*` where it falls back on that, otherwise `None`.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_str()
    }

    /// The longest Crawl-delay. Outside RFC 9309; that of `*` does not hold for a crawler that is named.
    #[must_use]
    pub fn crawl_delay(&self) -> Option<Duration> {
        let kept = &self.robots.0;
        self.sections
            .iter()
            .filter_map(|&section| kept.delay(section))
            .max()
    }

    /// The slowest Request-rate that is for all hours of the day.
    #[must_use]
    pub fn request_rate(&self) -> Option<RequestRate> {
        self.records()
            .filter(|record| record.name() == "request-rate")
            .filter_map(|record| RequestRate::parse(record.bytes()))
            .filter(|rate| rate.hours().is_none())
            .max_by_key(RequestRate::delay)
    }

    /// Records that are no rules, section by section in the order of the file: Content-Signal, Content-Usage,
    /// Request-rate and whatever else there is, of unknown names at most a thousand in a file.
    pub fn records(&self) -> impl Iterator<Item = Record<'r>> + use<'r, '_> {
        let kept = &self.robots.0;
        self.sections
            .iter()
            .flat_map(|&section| kept.records(Some(section)))
    }

    /// The rules in the order of the file, those without a path left out. For people: it sorts them first.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        let rules = self.robots.0.rules(&self.sections);
        rules
            .into_iter()
            .map(|at| Rule::new(Arc::clone(&self.robots.0), at))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn token(text: &str) -> ProductToken {
        text.parse().unwrap()
    }

    fn allowed(robots: &Robots, path: &str) -> bool {
        robots.group(&token("a")).check(path.as_bytes()).allowed()
    }

    #[test]
    fn a_crawler_that_was_not_parsed_for_may_fetch_nothing() {
        let file = b"User-agent: b\nDisallow: /b\nUser-agent: *\nDisallow: /s\n";
        let robots = Robots::builder().tokens([token("a")]).parse(file);
        assert!(allowed(&robots, "/b"));
        assert!(!allowed(&robots, "/s"));
        let group = robots.group(&token("b"));
        let verdict = group.check(b"/x");
        assert_eq!(
            (verdict.allowed(), verdict.cause()),
            (false, Cause::NotParsedFor)
        );
        assert_eq!(group.check(b"/robots.txt").cause(), Cause::RobotsTxt);
    }

    #[test]
    fn a_name_is_one_thing_and_the_group_for_all_another() {
        let robots = Robots::parse(b"User-agent: B\nUser-agent: *\nDisallow: /\n");
        assert!(robots.names(&token("b")));
        assert!(!robots.names(&token("a")));
        assert!(robots.named_group(&token("a")).is_none());
        assert_eq!(robots.group(&token("a")).name(), Some("*"));
        assert_eq!(robots.group(&token("b")).name(), Some("b"));
        assert_eq!(robots.group_names().collect::<Vec<_>>(), ["*", "B"]);
    }

    #[test]
    fn what_describes_a_group_is_for_the_names_above_it() {
        let file = b"Host: x\nUser-agent: a\nCrawl-delay: 5\nUser-agent: b\nCrawl-delay: 9\nDisallow: /p\nX-Note: both\n";
        let robots = Robots::parse(file);
        let delay = |name: &str| robots.group(&token(name)).crawl_delay();
        assert_eq!(delay("a"), Some(Duration::from_secs(5)));
        assert_eq!(delay("b"), Some(Duration::from_secs(9)));
        for name in ["a", "b"] {
            let group = robots.group(&token(name));
            assert!(!group.check(b"/p").allowed());
            let records: Vec<&str> = group.records().map(|record| record.name()).collect();
            assert_eq!(records, ["x-note"]);
        }
        let outside: Vec<u32> = robots.records().map(|record| record.line()).collect();
        assert_eq!(outside, [1]);
    }

    #[test]
    fn the_longest_delay_and_the_slowest_rate_hold() {
        let file =
            b"User-agent: a\nCrawl-delay: 2\nCrawl-delay: 7\nCrawl-delay: 3\nRequest-rate: 1/5\n\
            Request-rate: 1/1m\nRequest-rate: 1/1h 0900-1700\n";
        let robots = Robots::parse(file);
        let group = robots.group(&token("a"));
        assert_eq!(group.crawl_delay(), Some(Duration::from_secs(7)));
        let rate = group.request_rate().unwrap();
        assert_eq!(rate.delay(), Duration::from_secs(60));
    }

    #[test]
    fn a_rule_over_the_limits_closes_more_or_opens_nothing() {
        let stars = "x*".repeat(70);
        let file =
            format!("User-agent: a\nDisallow: /{stars}y\nAllow: /p*{stars}y\nDisallow: /p\n");
        let robots = Robots::parse(file.as_bytes());
        assert_eq!(robots.rules_over_limit(), 2);
        let crosses = "x".repeat(70);
        assert!(!allowed(&robots, &format!("/{crosses}")));
        assert!(!allowed(&robots, &format!("/p{crosses}y")));
        assert!(allowed(&robots, "/x"));
        // The rule is still told as it was written.
        let verdict = robots
            .group(&token("a"))
            .check(format!("/{crosses}").as_bytes());
        assert_eq!(verdict.rule().unwrap().text(), format!("/{stars}y"));
    }

    #[test]
    fn only_so_many_rules_with_wildcards_are_matched_in_full() {
        let mut file = "User-agent: a\n".to_owned();
        for number in 0..10_000 {
            let _ = writeln!(file, "Disallow: /*q{number}");
        }
        file += "Disallow: /late/*x\nAllow: /late/*\nAllow: /late/*z\n";
        let robots = Robots::parse(file.as_bytes());
        assert_eq!(robots.rules_over_limit(), 2);
        assert!(!allowed(&robots, "/late/y"));
        assert!(!allowed(&robots, "/late/z"));
        assert!(allowed(&robots, "/late"));
        assert!(!allowed(&robots, "/9q9999"));
    }

    #[test]
    fn what_lies_beyond_the_limit_is_not_read() {
        let mut file = b"User-agent: a\n".to_vec();
        file.resize(MAX_BYTES, b'#');
        file.extend(b"\nDisallow: /b\n");
        let robots = Robots::parse(&file);
        assert!(robots.is_cut() && allowed(&robots, "/b"));
        let more = Robots::builder().max_bytes(2 * MAX_BYTES).parse(&file);
        assert!(!more.is_cut() && !allowed(&more, "/b"));
    }

    #[test]
    fn other_files_are_told() {
        let what = |bytes: &[u8]| Robots::parse(bytes).unusable();
        assert_eq!(what(b"\n <html>\n"), Some(Unusable::Html));
        assert_eq!(what(b"\xff\xfeU\0s\0"), Some(Unusable::Utf16));
        assert_eq!(what(b"not found"), Some(Unusable::NoRecord));
        for text in ["", "# nothing\n", "<html>\nUser-agent: *\n", "Sitemap: x"] {
            assert_eq!(what(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_is_kept_is_in_proportion_to_what_was_read() {
        let mut rules = "User-agent: a\n".to_owned();
        let mut groups = String::new();
        for number in 0..500 {
            let _ = writeln!(rules, "Disallow: /catalog/{number}/*?sort=");
            let _ = writeln!(rules, "Allow: /catalog/{number}/index.html");
            let name: String = number
                .to_string()
                .bytes()
                .map(|digit| (digit + 49) as char)
                .collect();
            let _ = writeln!(
                groups,
                "User-agent: {name}-bot\nDisallow: /{number}/\nCrawl-delay: 3\n"
            );
        }
        for file in [&rules, &groups] {
            let size = Robots::parse(file.as_bytes()).size();
            assert!(2 * size <= 3 * file.len(), "{size} of {}", file.len());
        }
        let own = Robots::builder()
            .tokens([token("a")])
            .parse(groups.as_bytes());
        assert!(own.size() < 300, "{}", own.size());
    }
}
