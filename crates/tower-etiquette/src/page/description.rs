//! What the page says, in whatever form and language.

use etiquette_core::{Identity, PurposeKind};
use etiquette_robots::ProductToken;

use super::text::{self, Language, Text};

/// What the page says.
#[derive(Clone, Debug)]
pub(super) struct Description {
    pub(super) identity: Identity,
    pub(super) minutes: u64,
    pub(super) seconds: u64,
    pub(super) keys: Option<String>,
}

/// Something that an operator can do, with lines to paste.
#[derive(Clone, Debug)]
pub(super) struct Advice {
    pub(super) heading: Text,
    pub(super) lines: String,
    pub(super) note: Text,
}

impl Description {
    pub(super) fn user_agent(&self, purpose: PurposeKind) -> &str {
        let name = self.identity.user_agent(purpose).to_str();
        name.unwrap_or_default()
    }

    /// Of page fetches for people.
    pub(super) fn user_fetch_user_agent(&self) -> Option<&str> {
        let token = self.identity.user_token();
        token.map(|_| self.user_agent(PurposeKind::UserFetch))
    }

    /// The lines for robots.txt under a name.
    pub(super) fn lines(token: &ProductToken, rules: &str) -> String {
        format!("User-agent: {token}\n{rules}")
    }

    /// What an operator can do, from the mildest on.
    pub(super) fn advice(&self) -> Vec<Advice> {
        let own = |rules| Self::lines(self.identity.token(), rules);
        let busy = "HTTP/1.1 429 Too Many Requests\nRetry-After: 3600".to_owned();
        let advice = |heading, lines, note| Advice {
            heading,
            lines,
            note,
        };
        let mut all = vec![
            advice(text::SLOW, own("Crawl-delay: 10"), text::SLOW_NOTE),
            advice(text::PAUSE, busy, text::PAUSE_NOTE),
            advice(text::PATH, own("Disallow: /private/"), text::PATH_NOTE),
            advice(text::STOP, own("Disallow: /"), text::STOP_NOTE),
        ];
        if let Some(token) = self.identity.user_token() {
            let lines = Self::lines(token, "Disallow: /");
            all.push(advice(text::PEOPLE, lines, text::PEOPLE_NOTE));
        }
        all
    }

    /// A sentence with its blanks filled in.
    pub(super) fn say(&self, language: Language, what: Text) -> String {
        let user_token = self.identity.user_token();
        language
            .say(what)
            .replace("{token}", self.identity.token().as_str())
            .replace("{user}", user_token.map_or("", |token| token.as_str()))
            .replace("{minutes}", &self.minutes.to_string())
            .replace("{seconds}", &self.seconds.to_string())
    }
}
