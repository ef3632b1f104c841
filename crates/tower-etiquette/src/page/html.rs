//! The page as HTML and as JSON.

use std::fmt::Write;

use super::service::Told;
use super::text::{Language, Say};

/// Readable on a phone and on paper, light or dark as the reader has set it, without a request for anything else.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:1rem/1.55 system-ui,sans-serif;max-width:42rem;margin:2.5rem auto;padding:0 1.25rem}\
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .75rem;overflow-wrap:anywhere}\
h2{font-size:1.1rem;margin:2rem 0 .4rem}\
p{margin:.4rem 0}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;padding:.75rem 1rem;border:1px solid color-mix(in srgb,currentColor 25%,transparent);\
border-radius:.4rem;background:color-mix(in srgb,currentColor 6%,transparent)}\
pre{font:.9rem/1.5 ui-monospace,monospace}\
a{overflow-wrap:anywhere}";

impl Told {
    /// The page in one language.
    pub(super) fn html(&self, language: Language) -> String {
        let mut page = Page {
            told: self,
            language,
            html: String::with_capacity(6_000),
        };
        page.write();
        page.html
    }

    /// The lines for robots.txt under a name.
    fn lines(token: &str, rules: &str) -> String {
        format!("User-agent: {token}\n{rules}")
    }

    /// The same facts for programs.
    pub(super) fn json(&self) -> String {
        let mut json = String::from("{");
        let mut member = |name: &str, value: &str| {
            if json.len() > 1 {
                json.push(',');
            }
            let _ = write!(json, "{}:{value}", quoted(name));
        };
        let text = |text: &Option<String>| text.as_deref().map_or("null".to_owned(), quoted);
        member("token", &quoted(&self.token));
        member("user_token", &text(&self.user_token));
        member("version", &quoted(&self.version));
        member("user_agent", &quoted(&self.user_agent));
        member("url", &quoted(&self.url));
        member("contact", &text(&self.contact));
        member("purpose", &text(&self.purpose));
        member("acts_within_minutes", &self.minutes.to_string());
        member("longest_crawl_delay_seconds", &self.seconds.to_string());
        let stop = Self::lines(&self.token, "Disallow: /\n");
        member("robots_txt_to_stop", &quoted(&stop));
        let slow = Self::lines(&self.token, "Crawl-delay: 10\n");
        member("robots_txt_to_slow_down", &quoted(&slow));
        let people = self.user_token.as_ref();
        let people = people.map(|token| Self::lines(token, "Disallow: /\n"));
        member("robots_txt_to_stop_user_fetches", &text(&people));
        member("key_directory", &text(&self.keys));
        json.push('}');
        json
    }
}

struct Page<'a> {
    told: &'a Told,
    language: Language,
    html: String,
}

impl Page<'_> {
    fn write(&mut self) {
        let told = self.told;
        let title = self.say(Say::Title);
        let _ = write!(
            self.html,
            "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
            self.language.tag()
        );
        let _ = writeln!(self.html, "<h1>{title}</h1>");
        self.paragraph(Say::Intro);
        self.block(&told.user_agent);
        if let Some(purpose) = &told.purpose {
            self.heading(Say::Purpose);
            let _ = writeln!(self.html, "<p>{}</p>", escaped(purpose));
        }
        self.advice(
            Say::Slow,
            Say::SlowNote,
            &Told::lines(&told.token, "Crawl-delay: 10"),
        );
        self.advice(
            Say::Pause,
            Say::PauseNote,
            "HTTP/1.1 429 Too Many Requests\nRetry-After: 3600",
        );
        self.advice(
            Say::Path,
            Say::PathNote,
            &Told::lines(&told.token, "Disallow: /private/"),
        );
        self.advice(
            Say::Stop,
            Say::StopNote,
            &Told::lines(&told.token, "Disallow: /"),
        );
        if let Some(token) = &told.user_token {
            self.advice(
                Say::People,
                Say::PeopleNote,
                &Told::lines(token, "Disallow: /"),
            );
        }
        self.heading(Say::Verify);
        self.paragraph(Say::VerifyNote);
        if let Some(keys) = &told.keys {
            self.paragraph(Say::VerifyKeys);
            let link = escaped(keys);
            let _ = writeln!(self.html, "<p><a href=\"{link}\">{link}</a></p>");
        }
        if let Some(contact) = &told.contact {
            self.heading(Say::Contact);
            let contact = escaped(contact);
            let _ = writeln!(
                self.html,
                "<p><a href=\"mailto:{contact}\">{contact}</a></p>"
            );
            self.paragraph(Say::ContactNote);
        }
        self.html.push_str("</body>\n</html>\n");
    }

    /// A sentence with its blanks filled in and everything escaped.
    fn say(&self, what: Say) -> String {
        let told = self.told;
        escaped(self.language.say(what))
            .replace("{token}", &escaped(&told.token))
            .replace(
                "{user}",
                &escaped(told.user_token.as_deref().unwrap_or_default()),
            )
            .replace("{minutes}", &told.minutes.to_string())
            .replace("{seconds}", &told.seconds.to_string())
    }

    fn heading(&mut self, what: Say) {
        let text = self.say(what);
        let _ = writeln!(self.html, "<h2>{text}</h2>");
    }

    fn paragraph(&mut self, what: Say) {
        let text = self.say(what);
        let _ = writeln!(self.html, "<p>{text}</p>");
    }

    fn block(&mut self, text: &str) {
        let _ = writeln!(self.html, "<pre>{}</pre>", escaped(text));
    }

    fn advice(&mut self, heading: Say, note: Say, lines: &str) {
        self.heading(heading);
        self.block(lines);
        self.paragraph(note);
    }
}

/// Text as it may stand in elements and quoted attributes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Text as a JSON string.
fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            control if control < ' ' => {
                let _ = write!(json, "\\u{:04x}", control as u32);
            }
            other => json.push(other),
        }
    }
    json.push('"');
    json
}
