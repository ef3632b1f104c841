//! The page for programs: the same facts and the same sentences.

use etiquette_core::PurposeKind;

use super::description::Description;
use super::text::{self, Language};
use crate::json::Object;

impl Description {
    /// The page as JSON, its sentences in one language.
    pub(super) fn json(&self, language: Language) -> String {
        let identity = &self.identity;
        let own = |rules| Self::lines(identity.token(), rules);
        let mut object = Object::default();
        object.text("token", identity.token().as_str());
        let user_token = identity.user_token().map(|token| token.as_str());
        object.optional("user_token", user_token);
        object.text("version", identity.version());
        object.text("user_agent", self.user_agent(PurposeKind::Crawl));
        object.optional("user_fetch_user_agent", self.user_fetch_user_agent());
        object.text("url", identity.url());
        object.optional("contact", identity.contact());
        object.optional("purpose", identity.purpose());
        object.raw("acts_within_minutes", self.minutes);
        object.raw("longest_crawl_delay_seconds", self.seconds);
        object.text("robots_txt_to_stop", &own("Disallow: /\n"));
        object.text("robots_txt_to_slow_down", &own("Crawl-delay: 10\n"));
        let people = identity.user_token();
        let people = people.map(|token| Self::lines(token, "Disallow: /\n"));
        object.optional("robots_txt_to_stop_user_fetches", people.as_deref());
        object.optional("key_directory", self.keys.as_deref());
        object.text("language", language.tag());
        object.text("title", &self.say(language, text::TITLE));
        object.text("summary", &self.say(language, text::INTRO));
        let advice = self.advice().into_iter().map(|advice| {
            let mut object = Object::default();
            object.text("heading", &self.say(language, advice.heading));
            object.text("lines", &advice.lines);
            object.text("note", &self.say(language, advice.note));
            object.finish()
        });
        let advice: Vec<_> = advice.collect();
        object.raw("advice", format_args!("[{}]", advice.join(",")));
        object.text("verification", &self.say(language, text::VERIFY_NOTE));
        object.finish()
    }
}
