//! The page for programs: the same facts and the same sentences.

use super::description::Description;
use super::text::{Language, Say};
use crate::json::Object;

impl Description {
    /// The page as JSON, its sentences in one language.
    pub(super) fn json(&self, language: Language) -> String {
        let mut object = Object::default();
        object.text("token", &self.token);
        object.optional("user_token", self.user_token.as_deref());
        object.text("version", &self.version);
        object.text("user_agent", &self.user_agent);
        object.optional(
            "user_fetch_user_agent",
            self.user_fetch_user_agent.as_deref(),
        );
        object.text("url", &self.url);
        object.optional("contact", self.contact.as_deref());
        object.optional("purpose", self.purpose.as_deref());
        object.raw("acts_within_minutes", self.minutes);
        object.raw("longest_crawl_delay_seconds", self.seconds);
        let stop = Self::lines(&self.token, "Disallow: /\n");
        object.text("robots_txt_to_stop", &stop);
        let slow = Self::lines(&self.token, "Crawl-delay: 10\n");
        object.text("robots_txt_to_slow_down", &slow);
        let people = self.user_token.as_ref();
        let people = people.map(|token| Self::lines(token, "Disallow: /\n"));
        object.optional("robots_txt_to_stop_user_fetches", people.as_deref());
        object.optional("key_directory", self.keys.as_deref());
        object.text("language", language.tag());
        object.text("title", &self.say(language, Say::Title));
        object.text("summary", &self.say(language, Say::Intro));
        let advice: Vec<_> = self
            .advice()
            .into_iter()
            .map(|advice| {
                let mut object = Object::default();
                object.text("heading", &self.say(language, advice.heading));
                object.text("lines", &advice.lines);
                object.text("note", &self.say(language, advice.note));
                object.finish()
            })
            .collect();
        object.raw("advice", format_args!("[{}]", advice.join(",")));
        object.text("verification", &self.say(language, Say::VerifyNote));
        object.finish()
    }
}
