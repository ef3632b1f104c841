use http::{HeaderMap, Method, Uri};

use super::component::{Component, Head, MissingComponent};
use crate::field::structured::{self, Bare, Item, Member, Parameters, Value};

/// What a signature covers, and its parameters: one member of Signature-Input (RFC 9421, 2.3).
#[derive(Clone, Debug, PartialEq)]
pub struct SignatureInput {
    pub(super) items: Vec<Item>,
    pub(super) parameters: Parameters,
}

impl SignatureInput {
    /// An input over these components, without parameters.
    #[must_use]
    pub fn new(components: &[Component]) -> Self {
        Self {
            items: components.iter().map(Component::item).collect(),
            parameters: Vec::new(),
        }
    }

    /// Reads the value of a member, such as `("@authority");created=1`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let member = structured::dictionary(format!("s={text}").as_bytes())?;
        <[Member; 1]>::try_from(member)
            .ok()
            .and_then(|[member]| Self::of(member))
    }

    pub(super) fn of(member: Member) -> Option<Self> {
        match member.value {
            Value::List(items) => Some(Self {
                items,
                parameters: member.parameters,
            }),
            Value::Item(_) => None,
        }
    }

    /// Adds a time in seconds.
    #[must_use]
    pub fn time(self, name: &str, seconds: u64) -> Self {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        self.parameter(name, Bare::Integer(seconds))
    }

    /// Adds a text in ASCII; anything else is dropped from it.
    #[must_use]
    pub fn text(self, name: &str, text: &str) -> Self {
        let text = text.chars().filter(|c| (' '..='~').contains(c)).collect();
        self.parameter(name, Bare::String(text))
    }

    fn parameter(mut self, name: &str, value: Bare) -> Self {
        self.parameters.push((name.to_owned(), value));
        self
    }

    /// The value as it stands in Signature-Input, and as `@signature-params` in the base.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        structured::inner_list(&self.items, &mut text);
        structured::parameters(&self.parameters, &mut text);
        text
    }

    /// The bytes that are signed (RFC 9421, 2.5), for a request.
    ///
    /// # Errors
    /// [`MissingComponent`] names what the request does not have, or what is not understood.
    pub fn base(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<String, MissingComponent> {
        let head = Head {
            method,
            uri,
            headers,
        };
        self.base_with(|item| {
            let component = Component::of(item)?;
            component.value(head)
        })
    }

    /// The base, with the value of each component from `value_of`.
    pub(super) fn base_with(
        &self,
        value_of: impl Fn(&Item) -> Option<String>,
    ) -> Result<String, MissingComponent> {
        let mut base = String::new();
        for item in &self.items {
            let mut component = String::new();
            item.write(&mut component);
            let Some(value) = value_of(item) else {
                return Err(MissingComponent { component });
            };
            base.push_str(&component);
            base.push_str(": ");
            base.push_str(&value);
            base.push('\n');
        }
        base.push_str("\"@signature-params\": ");
        base.push_str(&self.to_text());
        Ok(base)
    }
}
