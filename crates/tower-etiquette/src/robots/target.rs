use etiquette_core::Origin;
use etiquette_robots::{Group, Verdict, resolve};

/// Path and query, as robots.txt matches them.
#[derive(Debug)]
pub(super) struct Target {
    sent: Box<str>,
    /// What a server that resolves dot segments makes of it, where it has any: a rule for that path is not got round by
    /// spelling it `/open/../closed`.
    resolved: Option<Box<str>>,
}

impl Target {
    pub(super) fn new(origin: &Origin, sent: &str) -> Self {
        let path = sent.split_once('?').map_or(sent, |(path, _)| path);
        let plain = path.replace("%2e", ".").replace("%2E", ".");
        let resolved = plain.contains("/.").then(|| {
            let query = &sent[path.len()..];
            let url = resolve(&origin.to_string(), &format!("{plain}{query}"));
            url.and_then(|url| url.strip_prefix(&origin.to_string()).map(Into::into))
        });
        Self {
            sent: sent.into(),
            resolved: resolved.flatten(),
        }
    }

    /// The verdict of `group`: allowed only if both spellings are.
    pub(super) fn check(&self, group: &Group<'_>) -> Verdict {
        let verdict = group.check(self.sent.as_bytes());
        match &self.resolved {
            Some(resolved) if verdict.allowed() => group.check(resolved.as_bytes()),
            _ => verdict,
        }
    }
}
