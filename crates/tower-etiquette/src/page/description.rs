//! What the page says, in whatever form and language.

use etiquette_core::{Identity, PurposeKind};

use super::text::{Language, Say};

/// What the page says.
#[derive(Clone, Debug)]
pub(super) struct Description {
    pub(super) token: String,
    pub(super) user_token: Option<String>,
    pub(super) version: String,
    pub(super) user_agent: String,
    /// Of page fetches for people.
    pub(super) user_fetch_user_agent: Option<String>,
    pub(super) url: String,
    pub(super) contact: Option<String>,
    pub(super) purpose: Option<String>,
    pub(super) minutes: u64,
    pub(super) seconds: u64,
    pub(super) keys: Option<String>,
}

/// Something that an operator can do, with lines to paste.
#[derive(Clone, Debug)]
pub(super) struct Advice {
    pub(super) heading: Say,
    pub(super) lines: String,
    pub(super) note: Say,
}

impl Description {
    pub(super) fn new(identity: &Identity) -> Self {
        let name = |purpose| {
            let name = identity.user_agent(purpose).to_str();
            name.unwrap_or_default().to_owned()
        };
        let user_token = identity.user_token();
        Self {
            token: identity.token().to_string(),
            user_token: user_token.map(ToString::to_string),
            version: identity.version().to_owned(),
            user_agent: name(PurposeKind::Crawl),
            user_fetch_user_agent: user_token.map(|_| name(PurposeKind::UserFetch)),
            url: identity.url().to_owned(),
            contact: identity.contact().map(str::to_owned),
            purpose: identity.purpose().map(str::to_owned),
            minutes: 60,
            seconds: 300,
            keys: None,
        }
    }

    /// The lines for robots.txt under a name.
    pub(super) fn lines(token: &str, rules: &str) -> String {
        format!("User-agent: {token}\n{rules}")
    }

    /// What an operator can do, from the mildest on.
    pub(super) fn advice(&self) -> Vec<Advice> {
        let own = |rules| Self::lines(&self.token, rules);
        let busy = "HTTP/1.1 429 Too Many Requests\nRetry-After: 3600".to_owned();
        let mut advice = vec![
            (Say::Slow, own("Crawl-delay: 10"), Say::SlowNote),
            (Say::Pause, busy, Say::PauseNote),
            (Say::Path, own("Disallow: /private/"), Say::PathNote),
            (Say::Stop, own("Disallow: /"), Say::StopNote),
        ];
        if let Some(token) = &self.user_token {
            let lines = Self::lines(token, "Disallow: /");
            advice.push((Say::People, lines, Say::PeopleNote));
        }
        let advice = advice.into_iter().map(|(heading, lines, note)| Advice {
            heading,
            lines,
            note,
        });
        advice.collect()
    }

    /// A sentence with its blanks filled in.
    pub(super) fn say(&self, language: Language, what: Say) -> String {
        language
            .say(what)
            .replace("{token}", &self.token)
            .replace("{user}", self.user_token.as_deref().unwrap_or_default())
            .replace("{minutes}", &self.minutes.to_string())
            .replace("{seconds}", &self.seconds.to_string())
    }
}
