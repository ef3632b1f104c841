//! From tokens to raw links: what the tokenizer must be told, and what is kept.

use std::cell::{Cell, RefCell};

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};

use super::page::{MAX_LINKS, MetaRobots};

/// `<meta>` elements beyond this many say nothing new to a robot.
const MAX_META: usize = 64;

/// What a page holds, references as written.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) base: Option<String>,
    pub(super) items: Vec<Item>,
    pub(super) robots: Vec<MetaRobots>,
    pub(super) overflow: bool,
    /// `<template>`s that are open, whose content is no part of the page.
    templates: u32,
    /// Elements of other vocabularies that are open, innermost last.
    foreign: Vec<Foreign>,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) href: String,
    pub(super) rel: String,
    pub(super) media_type: Option<String>,
    pub(super) hreflang: Option<String>,
    pub(super) title: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Anchor,
    Link,
}

/// Where the vocabulary changes: markup in SVG and MathML has no raw text elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    Svg,
    Math,
    /// HTML again, inside `foreignObject`, `desc` or `title` of an SVG.
    Html,
}

#[derive(Debug, Default)]
pub(super) struct Sink {
    found: RefCell<Found>,
    tokens: Cell<u64>,
}

impl Sink {
    pub(super) fn into_found(self) -> Found {
        self.found.into_inner()
    }

    /// How many tags and runs of text there were so far.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens.get()
    }
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => {
                self.tokens.set(self.tokens.get() + 1);
                match tag.kind {
                    TagKind::StartTag => return self.found.borrow_mut().start(&tag),
                    TagKind::EndTag => self.found.borrow_mut().end(&tag.name),
                }
            }
            Token::CharacterTokens(_) | Token::CommentToken(_) => {
                self.tokens.set(self.tokens.get() + 1);
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.found.borrow().in_foreign()
    }
}

impl Found {
    fn in_foreign(&self) -> bool {
        matches!(self.foreign.last(), Some(Foreign::Svg | Foreign::Math))
    }

    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        if self.in_foreign() && leaves_foreign(name) {
            self.foreign.clear();
        }
        let foreign = self.in_foreign();
        match name {
            "a" | "area" => self.item(Kind::Anchor, tag),
            "link" if !foreign => self.item(Kind::Link, tag),
            "base" if !foreign && self.templates == 0 && self.base.is_none() => {
                self.base = attribute(tag, "href");
            }
            "meta" if !foreign => self.meta(tag),
            "template" if !foreign && attribute(tag, "shadowrootmode").is_none() => {
                self.templates = self.templates.saturating_add(1);
            }
            "svg" if !tag.self_closing => self.enter(Foreign::Svg),
            "math" if !tag.self_closing => self.enter(Foreign::Math),
            "foreignobject" | "desc" | "title"
                if foreign && self.foreign.last() == Some(&Foreign::Svg) && !tag.self_closing =>
            {
                self.enter(Foreign::Html);
            }
            _ => {}
        }
        if foreign {
            return TokenSinkResult::Continue;
        }
        match name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }

    fn end(&mut self, name: &str) {
        let leaves = match name {
            "svg" => Foreign::Svg,
            "math" => Foreign::Math,
            "foreignobject" | "desc" | "title" => Foreign::Html,
            "template" => {
                self.templates = self.templates.saturating_sub(1);
                return;
            }
            _ => return,
        };
        if let Some(open) = self.foreign.iter().rposition(|one| *one == leaves) {
            self.foreign.truncate(open);
        }
    }

    fn enter(&mut self, vocabulary: Foreign) {
        // Deeper nesting than this has no use, and only costs memory.
        if self.foreign.len() < 64 {
            self.foreign.push(vocabulary);
        }
    }

    fn item(&mut self, kind: Kind, tag: &Tag) {
        let Some(href) = attribute(tag, "href") else {
            return;
        };
        if self.templates > 0 {
            return;
        }
        if self.items.len() >= MAX_LINKS {
            self.overflow = true;
            return;
        }
        let mut rel = attribute(tag, "rel").unwrap_or_default();
        rel.make_ascii_lowercase();
        let of_link = |name| {
            if kind == Kind::Link {
                attribute(tag, name)
            } else {
                None
            }
        };
        let item = Item {
            kind,
            href,
            rel,
            media_type: of_link("type"),
            hreflang: of_link("hreflang"),
            title: of_link("title"),
        };
        self.items.push(item);
    }

    fn meta(&mut self, tag: &Tag) {
        if self.templates > 0 || self.robots.len() >= MAX_META {
            return;
        }
        if let (Some(mut name), Some(content)) = (attribute(tag, "name"), attribute(tag, "content"))
        {
            name.make_ascii_lowercase();
            let name = name.trim();
            // Product tokens have letters, hyphens and underscores.
            let may_be_token = !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphabetic() || matches!(b, b'-' | b'_'));
            if may_be_token {
                self.robots.push(MetaRobots {
                    name: name.to_owned(),
                    content,
                });
            }
        }
    }
}

fn attribute(tag: &Tag, name: &str) -> Option<String> {
    tag.attrs
        .iter()
        .find(|attribute| &*attribute.name.local == name)
        .map(|attribute| attribute.value.to_string())
}

/// Start tags that end SVG and MathML wherever they stand (HTML, "parsing main in foreign content").
fn leaves_foreign(name: &str) -> bool {
    matches!(
        name,
        "b" | "big"
            | "blockquote"
            | "body"
            | "br"
            | "center"
            | "code"
            | "dd"
            | "div"
            | "dl"
            | "dt"
            | "em"
            | "embed"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "head"
            | "hr"
            | "i"
            | "img"
            | "li"
            | "listing"
            | "menu"
            | "meta"
            | "nobr"
            | "ol"
            | "p"
            | "pre"
            | "ruby"
            | "s"
            | "small"
            | "span"
            | "strong"
            | "strike"
            | "sub"
            | "sup"
            | "table"
            | "tt"
            | "u"
            | "ul"
            | "var"
    )
}
