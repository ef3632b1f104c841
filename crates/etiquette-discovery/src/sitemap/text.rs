//! Text sitemaps: one URI a line.

/// Lines without a URI after which a text without any is no sitemap.
const HOPELESS: u32 = 16;
/// A line that is longer is no URI.
const MAX_LINE: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(super) struct Text {
    found: bool,
    other: u32,
    /// Inside a line that is too long.
    skipping: bool,
}

impl Text {
    /// Reads the complete lines of a window, all of it when it is the last; returns how much was read.
    pub(super) fn read(&mut self, window: &str, last: bool, on: &mut dyn FnMut(&str)) -> usize {
        let mut read = 0;
        while read < window.len() {
            let rest = &window[read..];
            let (line, used, ends) = match rest.find(['\n', '\r']) {
                Some(end) => (&rest[..end], end + 1, true),
                None if last => (rest, rest.len(), true),
                None if rest.len() > MAX_LINE => (rest, rest.len(), false),
                None => break,
            };
            read += used;
            if !ends {
                self.skipping = true;
            } else if std::mem::take(&mut self.skipping) || line.len() > MAX_LINE {
                self.other = self.other.saturating_add(1);
            } else {
                self.line(line.trim(), on);
            }
        }
        read
    }

    fn line(&mut self, line: &str, on: &mut dyn FnMut(&str)) {
        if line.is_empty() {
            return;
        }
        let scheme = line.split("://").next().unwrap_or_default();
        if scheme.len() < line.len()
            && (scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http"))
        {
            self.found = true;
            on(line);
        } else {
            self.other = self.other.saturating_add(1);
        }
    }

    pub(super) fn has_any(&self) -> bool {
        self.found
    }

    /// Whether what was read so far is no list of URIs.
    pub(super) fn is_hopeless(&self) -> bool {
        !self.found && self.other >= HOPELESS
    }
}
