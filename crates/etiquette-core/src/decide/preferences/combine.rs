use etiquette_robots::Group;
use http::HeaderMap;

use super::{Directives, Tdm, Use, Wish, Wishes, content_signal, content_usage};

/// Who said something about a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatementSource {
    /// The Content-Usage header of the response.
    ContentUsageHeader,
    /// A Content-Usage rule of robots.txt.
    ContentUsageRobots,
    /// The Content-Signal header of the response.
    ContentSignalHeader,
    /// A Content-Signal record of robots.txt.
    ContentSignalRobots,
    /// `noai` or `noimageai` in X-Robots-Tag or a robots meta element.
    Directives,
    /// A reservation of text and data mining.
    Tdm,
}

/// What one source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Statement {
    /// Who.
    pub source: StatementSource,
    /// What.
    pub wishes: Wishes,
}

/// What a site wishes to be done with a page, all sources together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    wishes: Wishes,
    statements: Vec<Statement>,
    directives: Directives,
    tdm: Tdm,
}

impl Preferences {
    /// Reads the head of a response and, if the caller has it, the group of robots.txt that binds the client with this
    /// token. Nothing is fetched, no body is read.
    #[must_use]
    pub fn read(headers: &HeaderMap, group: Option<(&Group<'_>, &[u8])>, token: &str) -> Self {
        fn lines<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h [u8]> {
            let lines = headers.get_all(name).iter();
            lines
                .map(http::HeaderValue::as_bytes)
                .collect::<Vec<_>>()
                .into_iter()
        }
        let mut read = Self::default();
        read.add(
            StatementSource::ContentUsageHeader,
            content_usage::from_header(lines(headers, "content-usage")),
        );
        read.add(
            StatementSource::ContentSignalHeader,
            content_signal::from_header(lines(headers, "content-signal")),
        );
        if let Some((group, path)) = group {
            read.add(
                StatementSource::ContentUsageRobots,
                content_usage::from_robots(group, path),
            );
            read.add(
                StatementSource::ContentSignalRobots,
                content_signal::from_robots(group),
            );
        }
        read.add_directives(Directives::from_header(
            lines(headers, "x-robots-tag"),
            token,
        ));
        read.add_tdm(Tdm::from_headers(headers));
        read
    }

    /// Adds what one source says. A source that says nothing leaves no trace.
    pub fn add(&mut self, source: StatementSource, wishes: Wishes) {
        if wishes != Wishes::default() {
            self.statements.push(Statement { source, wishes });
            self.wishes = self.wishes.and(wishes);
        }
    }

    /// Adds directives of the page. `noindex` and its like stay directives; only `noai` and `noimageai` are about a
    /// use.
    pub fn add_directives(&mut self, directives: Directives) {
        if directives.has("noai") || directives.has("noimageai") {
            self.add(StatementSource::Directives, no_training());
        }
        self.directives.extend(directives);
    }

    /// Adds a reservation. One of text and data mining disallows training unless it is licensed; none grants nothing.
    pub fn add_tdm(&mut self, tdm: Tdm) {
        if tdm.reserved == Some(true) {
            self.add(StatementSource::Tdm, no_training());
        }
        self.tdm = std::mem::take(&mut self.tdm).or(tdm);
    }

    /// The wish about a use: any disallow, else any allow.
    #[must_use]
    pub fn about(&self, what: Use) -> Wish {
        self.wishes.about(what)
    }

    /// The wishes about all uses.
    #[must_use]
    pub fn wishes(&self) -> Wishes {
        self.wishes
    }

    /// What each source says, in the order header, robots.txt, directives, reservation.
    #[must_use]
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// The robots directives of the page, such as `noindex`.
    #[must_use]
    pub fn directives(&self) -> &Directives {
        &self.directives
    }

    /// The reservation of text and data mining.
    #[must_use]
    pub fn tdm(&self) -> &Tdm {
        &self.tdm
    }

    /// The first source that disallows a use.
    #[must_use]
    pub fn who_disallows(&self, what: Use) -> Option<StatementSource> {
        self.statements
            .iter()
            .find(|statement| statement.wishes.about(what) == Wish::Disallow)
            .map(|statement| statement.source)
    }
}

fn no_training() -> Wishes {
    Wishes {
        train_ai: Wish::Disallow,
        ..Wishes::default()
    }
}
