//! From the parts of an identity to header values, or to what is wrong with a part.

use std::sync::Arc;

use etiquette_robots::ProductToken;
use http::{HeaderValue, Uri};

use super::invalid::{Fault, Field, InvalidIdentity};
use super::value::{Identity, Inner};
use super::{judge, known, syntax};

/// How the parts of an identity are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Style {
    /// `Mozilla/5.0 (compatible; TOKEN/VERSION; URL; …)`: what operators' filters and log tools know best.
    #[default]
    Compatible,
    /// `TOKEN/VERSION (URL; …)`: what RFC 9110, 10.1.5 has in mind.
    Product,
}

/// Makes an [`Identity`]. [`Identity::builder`] and [`Identity::raw`] start one.
#[derive(Clone, Debug)]
#[must_use = "an identity is made by `build`"]
pub struct Builder {
    token: String,
    user_token: Option<String>,
    form: Form,
    contact: Option<String>,
    purpose: Option<String>,
    purpose_in_comment: bool,
    comment: Option<String>,
    products: Vec<String>,
    max_len: usize,
    renders: bool,
}

#[derive(Clone, Debug)]
enum Form {
    Parts {
        version: String,
        url: String,
        style: Style,
    },
    Raw(String),
}

/// The longest header value: of 2,116 published strings of automated clients two are longer.
const MAX_LEN: usize = 256;

impl Identity {
    /// Starts an identity: its token, its version, and the link to a page that says what the client does.
    pub fn builder(
        token: impl Into<String>,
        version: impl Into<String>,
        url: impl Into<String>,
    ) -> Builder {
        Builder::parts(token.into(), version.into(), url.into())
    }

    /// Starts an identity from a whole User-Agent string, which must have `token`, its version and a link. For user
    /// fetches, the user token takes the place of the token.
    pub fn raw(token: impl Into<String>, user_agent: impl Into<String>) -> Builder {
        Builder::raw(token.into(), user_agent.into())
    }
}

impl Builder {
    pub(super) fn parts(token: String, version: String, url: String) -> Self {
        Self::of(
            token,
            Form::Parts {
                version,
                url,
                style: Style::default(),
            },
        )
    }

    pub(super) fn raw(token: String, user_agent: String) -> Self {
        Self::of(token, Form::Raw(user_agent))
    }

    fn of(token: String, form: Form) -> Self {
        Self {
            token,
            user_token: None,
            form,
            contact: None,
            purpose: None,
            purpose_in_comment: false,
            comment: None,
            products: Vec::new(),
            max_len: MAX_LEN,
            renders: false,
        }
    }

    /// The operator's mail address. Crawls send it as `From` (RFC 9110, 10.1.2), and it stands in the comment.
    pub fn contact(mut self, mailbox: impl Into<String>) -> Self {
        self.contact = Some(mailbox.into());
        self
    }

    /// The token for pages that a person asked for. It may neither contain the token for crawls nor be contained in
    /// it, so that a filter for one never hits the other. Without it no such page can be asked for.
    pub fn user_token(mut self, token: impl Into<String>) -> Self {
        self.user_token = Some(token.into());
        self
    }

    /// A free comment behind link and contact, in ASCII and without semicolons. An empty one is left out.
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// What the client is for, in a sentence for the description page. It is not sent unless
    /// [`purpose_in_comment`](Self::purpose_in_comment) says so, and need not be ASCII.
    pub fn purpose(mut self, purpose: impl Into<String>) -> Self {
        self.purpose = Some(purpose.into());
        self
    }

    /// Sends the purpose too, in the comment. It must then be a valid comment. Off by default.
    pub fn purpose_in_comment(mut self, yes: bool) -> Self {
        self.purpose_in_comment = yes;
        self
    }

    /// Adds a product such as `my-library/1.2` behind the comment; the most significant first.
    pub fn product(mut self, product: impl Into<String>) -> Self {
        self.products.push(product.into());
        self
    }

    /// How the parts are put together. A raw string keeps its own form.
    pub fn style(mut self, chosen: Style) -> Self {
        if let Form::Parts { style, .. } = &mut self.form {
            *style = chosen;
        }
        self
    }

    /// The longest header value, in bytes; 256 by default.
    pub fn max_len(mut self, bytes: usize) -> Self {
        self.max_len = bytes;
        self
    }

    /// Declares that pages are rendered with a browser's engine, so that the products of that engine may stand beside
    /// the own token. Off by default: such strings are taken for a browser's.
    pub fn renders(mut self, yes: bool) -> Self {
        self.renders = yes;
        self
    }

    /// Checks the parts in the order token, user token, version, link, contact, purpose, comment, products, length,
    /// and makes the identity.
    ///
    /// # Errors
    /// [`InvalidIdentity`] names the first part that does not hold.
    pub fn build(self) -> Result<Identity, InvalidIdentity> {
        let token = token(Field::Token, &self.token)?;
        let user_token = match &self.user_token {
            Some(text) => {
                let second = self::token(Field::UserToken, text)?;
                check_overlap(&self.token, text)?;
                Some(second)
            }
            None => None,
        };
        let mut inner = match &self.form {
            Form::Parts {
                version,
                url,
                style,
            } => self.make_from_parts(token, user_token, version, url, *style)?,
            Form::Raw(text) => self.make_from_raw(token, user_token, text)?,
        };
        inner.purpose = self.purpose.filter(|purpose| !purpose.is_empty());
        inner.max_len = self.max_len;
        inner.renders = self.renders;
        Ok(Identity(Arc::new(inner)))
    }

    fn make_from_parts(
        &self,
        token: ProductToken,
        user_token: Option<ProductToken>,
        version: &str,
        url: &str,
        style: Style,
    ) -> Result<Inner, InvalidIdentity> {
        check_version(version)?;
        check_url(url)?;
        let (contact, purpose) = self.checked_contact_and_purpose()?;
        let comment = match self.comment.as_deref() {
            Some(text) => comment(Field::Comment, text)?,
            None => None,
        };
        for product in &self.products {
            check_product(product, self.renders)?;
        }
        let value = |token: &ProductToken| {
            let own = format!("{}/{version}", token.as_str());
            let details = [Some(url), contact, purpose.as_deref(), comment.as_deref()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; ");
            let mut text = match style {
                Style::Compatible => format!("Mozilla/5.0 (compatible; {own}; {details})"),
                Style::Product => format!("{own} ({details})"),
            };
            for product in &self.products {
                text.push(' ');
                text.push_str(product);
            }
            self.header(&text)
        };
        Ok(Inner {
            crawl: value(&token)?,
            user: user_token.as_ref().map(value).transpose()?,
            from: contact.map(from).transpose()?,
            help: help(url, contact),
            version: version.to_owned(),
            url: url.to_owned(),
            contact: contact.map(str::to_owned),
            token,
            user_token,
            purpose: None,
            max_len: 0,
            renders: false,
        })
    }

    fn make_from_raw(
        &self,
        token: ProductToken,
        user_token: Option<ProductToken>,
        text: &str,
    ) -> Result<Inner, InvalidIdentity> {
        let (version, url) = self.check_raw(token.as_str(), text)?;
        let (contact, _) = self.checked_contact_and_purpose()?;
        let user = user_token
            .as_ref()
            .map(|user| self.header(&with_token(text, token.as_str(), user.as_str())))
            .transpose()?;
        Ok(Inner {
            crawl: self.header(text)?,
            user,
            from: contact.map(from).transpose()?,
            help: help(url, contact),
            version: version.to_owned(),
            url: url.to_owned(),
            contact: contact.map(str::to_owned),
            token,
            user_token,
            purpose: None,
            max_len: 0,
            renders: false,
        })
    }

    /// Checks a whole string and returns the version and the link in it.
    fn check_raw<'t>(
        &self,
        token: &str,
        text: &'t str,
    ) -> Result<(&'t str, &'t str), InvalidIdentity> {
        let err = |fault| InvalidIdentity::new(Field::UserAgent, fault);
        check_bytes(Field::UserAgent, text)?;
        if text.len() > self.max_len {
            return Err(err(Fault::TooLong));
        }
        if !text.contains(token) {
            return Err(err(Fault::TokenNotSubstring));
        }
        if syntax::delimited(text, token).is_none() {
            return Err(err(Fault::TokenNotDelimited));
        }
        let version = version_of(text, token).ok_or(err(Fault::NoVersion))?;
        let url = syntax::link(text).ok_or(err(Fault::NoUrl))?;
        if !syntax::is_user_agent(text) {
            return Err(err(Fault::BadGrammar));
        }
        if judge::claims_browser(text) && !self.renders {
            return Err(err(Fault::LooksLikeBrowser));
        }
        if judge::names_known_agent(text, &[token]) {
            return Err(err(Fault::ImpersonatesKnownAgent));
        }
        Ok((version, url))
    }

    /// The contact, and the purpose as a part of the comment if it is to be sent.
    fn checked_contact_and_purpose(
        &self,
    ) -> Result<(Option<&str>, Option<String>), InvalidIdentity> {
        let contact = self.contact.as_deref();
        if let Some(contact) = contact {
            check_bytes(Field::Contact, contact)?;
            if !is_mailbox(contact) {
                return Err(InvalidIdentity::new(Field::Contact, Fault::NotAMailbox));
            }
        }
        let purpose = match self.purpose.as_deref() {
            Some(text) if self.purpose_in_comment => comment(Field::Purpose, text)?,
            Some(text) if text.chars().any(char::is_control) => {
                return Err(InvalidIdentity::new(Field::Purpose, Fault::ControlChar));
            }
            _ => None,
        };
        Ok((contact, purpose))
    }

    fn header(&self, text: &str) -> Result<HeaderValue, InvalidIdentity> {
        if text.len() > self.max_len {
            return Err(InvalidIdentity::new(Field::UserAgent, Fault::TooLong));
        }
        // Each part has been checked; what http accepts beyond that (obs-text) cannot occur.
        HeaderValue::from_str(text)
            .map_err(|_| InvalidIdentity::new(Field::UserAgent, Fault::ControlChar))
    }
}

/// No control characters, nothing beyond ASCII. `HeaderValue::from_str` lets the latter pass.
fn check_bytes(field: Field, text: &str) -> Result<(), InvalidIdentity> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(InvalidIdentity::new(field, Fault::ControlChar));
    }
    if !text.is_ascii() {
        return Err(InvalidIdentity::new(field, Fault::NonAscii));
    }
    Ok(())
}

fn token(field: Field, text: &str) -> Result<ProductToken, InvalidIdentity> {
    let err = |fault| InvalidIdentity::new(field, fault);
    if text.is_empty() {
        return Err(err(Fault::Empty));
    }
    check_bytes(field, text)?;
    if text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(err(Fault::Digit));
    }
    let token: ProductToken = text.parse().map_err(|_| err(Fault::IllegalChar))?;
    // The RFC's grammar allows it, but nobody could address it.
    if !text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return Err(err(Fault::IllegalChar));
    }
    if known::is_browser(text) {
        return Err(err(Fault::LooksLikeBrowser));
    }
    if known::known_agent(text).is_some() {
        return Err(err(Fault::ImpersonatesKnownAgent));
    }
    Ok(token)
}

fn check_overlap(token: &str, user_token: &str) -> Result<(), InvalidIdentity> {
    let (token, user_token) = (token.to_ascii_lowercase(), user_token.to_ascii_lowercase());
    if token.contains(&user_token) || user_token.contains(&token) {
        return Err(InvalidIdentity::new(Field::UserToken, Fault::Overlaps));
    }
    Ok(())
}

fn check_version(version: &str) -> Result<(), InvalidIdentity> {
    if version.is_empty() {
        return Err(InvalidIdentity::new(Field::Version, Fault::Empty));
    }
    check_bytes(Field::Version, version)?;
    if !version.bytes().all(syntax::is_tchar) {
        return Err(InvalidIdentity::new(Field::Version, Fault::IllegalChar));
    }
    Ok(())
}

fn check_url(url: &str) -> Result<(), InvalidIdentity> {
    let err = |fault| InvalidIdentity::new(Field::Url, fault);
    if url.is_empty() {
        return Err(err(Fault::Empty));
    }
    check_bytes(Field::Url, url)?;
    let (scheme, rest) = url.split_once("://").ok_or(err(Fault::NotHttp))?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(err(Fault::NotHttp));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if authority.contains('@') {
        return Err(err(Fault::Userinfo));
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err(err(Fault::NoHost));
    }
    if url.bytes().any(|byte| b" ();\\\"<>{}|^`".contains(&byte)) || url.parse::<Uri>().is_err() {
        return Err(err(Fault::IllegalChar));
    }
    Ok(())
}

/// Whether `text` is a plain `local@domain`.
fn is_mailbox(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let dots = |part: &str| !part.split('.').any(str::is_empty);
    dots(local)
        && dots(domain)
        && local
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte))
        && domain
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

/// A part of the comment, with parentheses and backslashes quoted (RFC 9110, 5.6.5); nothing if it is empty.
fn comment(field: Field, text: &str) -> Result<Option<String>, InvalidIdentity> {
    check_bytes(field, text)?;
    if text.contains(';') {
        return Err(InvalidIdentity::new(field, Fault::Separator));
    }
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '(' | ')' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    Ok(Some(quoted))
}

fn check_product(product: &str, renders: bool) -> Result<(), InvalidIdentity> {
    let err = |fault| InvalidIdentity::new(Field::Product, fault);
    if !syntax::is_product(product) {
        return Err(err(Fault::NotAProduct));
    }
    let name = product.split('/').next().unwrap_or(product);
    if known::is_browser(name) && !renders {
        return Err(err(Fault::LooksLikeBrowser));
    }
    match known::named_by(product) {
        Some(agent) if agent.purpose != known::KnownPurpose::LibraryDefault => {
            Err(err(Fault::ImpersonatesKnownAgent))
        }
        _ => Ok(()),
    }
}

/// The version behind a delimited `token` in `text`.
fn version_of<'t>(text: &'t str, token: &str) -> Option<&'t str> {
    let mut rest = text;
    while let Some(at) = syntax::delimited(rest, token) {
        rest = &rest[at + token.len()..];
        if let Some(version) = rest.strip_prefix('/') {
            let end = version
                .bytes()
                .position(|byte| !syntax::is_tchar(byte))
                .unwrap_or(version.len());
            if end > 0 {
                return Some(&version[..end]);
            }
        }
    }
    None
}

/// `text` with `other` wherever `token` stands as a word of its own and outside of links.
fn with_token(text: &str, token: &str, other: &str) -> String {
    let mut replaced = String::with_capacity(text.len() + other.len());
    let mut rest = text;
    while let Some(at) = syntax::delimited(rest, token) {
        let word = rest[..at]
            .rfind([' ', '(', ';', ',', '\t'])
            .map_or(0, |blank| blank + 1);
        let in_link = syntax::link_start(&rest[word..at]).is_some();
        replaced.push_str(&rest[..at]);
        replaced.push_str(if in_link { token } else { other });
        rest = &rest[at + token.len()..];
    }
    replaced.push_str(rest);
    replaced
}

fn from(contact: &str) -> Result<HeaderValue, InvalidIdentity> {
    HeaderValue::from_str(contact)
        .map_err(|_| InvalidIdentity::new(Field::Contact, Fault::NotAMailbox))
}

fn help(url: &str, contact: Option<&str>) -> Arc<str> {
    match contact {
        Some(contact) => format!("{url}, {contact}").into(),
        None => url.into(),
    }
}
