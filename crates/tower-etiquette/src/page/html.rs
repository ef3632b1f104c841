//! The page as HTML.

use std::fmt::Write;

use etiquette_core::PurposeKind;

use super::description::Description;
use super::text::{self, Language, Text};

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

impl Description {
    /// The page in one language.
    pub(super) fn html(&self, language: Language) -> String {
        let mut page = Page {
            description: self,
            language,
            html: String::with_capacity(6_000),
        };
        page.write();
        page.html
    }
}

struct Page<'a> {
    description: &'a Description,
    language: Language,
    html: String,
}

impl Page<'_> {
    fn write(&mut self) {
        let identity = &self.description.identity;
        let title = self.say(text::TITLE);
        let _ = write!(
            self.html,
            "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
            self.language.tag()
        );
        let _ = writeln!(self.html, "<h1>{title}</h1>");
        self.paragraph(text::INTRO);
        self.block(self.description.user_agent(PurposeKind::Crawl));
        if let Some(purpose) = identity.purpose() {
            self.heading(text::PURPOSE);
            let _ = writeln!(self.html, "<p>{}</p>", escaped(purpose));
        }
        for advice in self.description.advice() {
            self.heading(advice.heading);
            self.block(&advice.lines);
            self.paragraph(advice.note);
        }
        if let Some(name) = self.description.user_fetch_user_agent() {
            // Below what is said last: how to stop page fetches for people.
            self.block(name);
        }
        self.heading(text::VERIFY);
        self.paragraph(text::VERIFY_NOTE);
        if let Some(keys) = &self.description.keys {
            self.paragraph(text::VERIFY_KEYS);
            let link = escaped(keys);
            let _ = writeln!(self.html, "<p><a href=\"{link}\">{link}</a></p>");
        }
        if let Some(contact) = identity.contact() {
            self.heading(text::CONTACT);
            let contact = escaped(contact);
            let _ = writeln!(
                self.html,
                "<p><a href=\"mailto:{contact}\">{contact}</a></p>"
            );
            self.paragraph(text::CONTACT_NOTE);
        }
        self.html.push_str("</body>\n</html>\n");
    }

    fn say(&self, what: Text) -> String {
        escaped(&self.description.say(self.language, what))
    }

    fn heading(&mut self, what: Text) {
        let text = self.say(what);
        let _ = writeln!(self.html, "<h2>{text}</h2>");
    }

    fn paragraph(&mut self, what: Text) {
        let text = self.say(what);
        let _ = writeln!(self.html, "<p>{text}</p>");
    }

    fn block(&mut self, text: &str) {
        let _ = writeln!(self.html, "<pre>{}</pre>", escaped(text));
    }
}

/// Text as it may stand in elements and quoted attributes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
