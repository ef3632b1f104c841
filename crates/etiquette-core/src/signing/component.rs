use std::error::Error;
use std::fmt;

use http::{HeaderMap, HeaderName, Method, Uri};

use crate::Origin;
use crate::field::structured::{self, Bare, Item};

/// A part of a message that a signature covers (RFC 9421, 2).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Component {
    /// `@method`.
    Method,
    /// `@authority`: the host in lower case, a default port removed.
    Authority,
    /// `@scheme`.
    Scheme,
    /// `@target-uri`.
    TargetUri,
    /// `@request-target`.
    RequestTarget,
    /// `@path`.
    Path,
    /// `@query`, with its question mark, which is there even without a query.
    Query,
    /// A header field, its lines joined.
    Field(HeaderName),
    /// A member of a header field that is a dictionary.
    Member(HeaderName, String),
}

/// What a message lacks of what a signature covers, or what is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingComponent {
    /// The component as it would stand in Signature-Input.
    pub component: String,
}

impl fmt::Display for MissingComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the message has no {}", self.component)
    }
}

impl Error for MissingComponent {}

/// The head of a request, as far as signatures cover it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) headers: &'a HeaderMap,
}

impl Component {
    fn name(&self) -> &str {
        match self {
            Self::Method => "@method",
            Self::Authority => "@authority",
            Self::Scheme => "@scheme",
            Self::TargetUri => "@target-uri",
            Self::RequestTarget => "@request-target",
            Self::Path => "@path",
            Self::Query => "@query",
            Self::Field(name) | Self::Member(name, _) => name.as_str(),
        }
    }

    /// The component as an item of Signature-Input.
    pub(super) fn item(&self) -> Item {
        let parameters = match self {
            Self::Member(_, key) => vec![("key".to_owned(), Bare::String(key.clone()))],
            _ => Vec::new(),
        };
        Item {
            bare: Bare::String(self.name().to_owned()),
            parameters,
        }
    }

    /// The component that an item of Signature-Input means; `None` where this crate does not know it.
    pub(super) fn of(item: &Item) -> Option<Self> {
        let Bare::String(name) = &item.bare else {
            return None;
        };
        if let [(parameter, Bare::String(key))] = item.parameters.as_slice() {
            if parameter != "key" || name.starts_with('@') {
                return None;
            }
            return Some(Self::Member(field_name(name)?, key.clone()));
        }
        if !item.parameters.is_empty() {
            return None;
        }
        Some(match name.as_str() {
            "@method" => Self::Method,
            "@authority" => Self::Authority,
            "@scheme" => Self::Scheme,
            "@target-uri" => Self::TargetUri,
            "@request-target" => Self::RequestTarget,
            "@path" => Self::Path,
            "@query" => Self::Query,
            name => Self::Field(field_name(name)?),
        })
    }

    /// The value of the component in a request; `None` if there is none.
    pub(super) fn value(&self, head: Head<'_>) -> Option<String> {
        match self {
            Self::Method => Some(head.method.as_str().to_owned()),
            Self::Authority => authority(head),
            Self::Scheme => head.uri.scheme_str().map(str::to_ascii_lowercase),
            Self::TargetUri => {
                head.uri.authority()?;
                Some(head.uri.to_string())
            }
            Self::RequestTarget => {
                let target = head.uri.path_and_query()?;
                Some(target.as_str().to_owned())
            }
            Self::Path => Some(match head.uri.path() {
                "" => "/".to_owned(),
                path => path.to_owned(),
            }),
            Self::Query => Some(format!("?{}", head.uri.query().unwrap_or_default())),
            Self::Field(name) => field(head.headers, name),
            Self::Member(name, key) => {
                let members = structured::dictionary(field(head.headers, name)?.as_bytes())?;
                let member = members.iter().find(|member| member.key == *key)?;
                let mut value = String::new();
                member.write_value(&mut value);
                Some(value)
            }
        }
    }

    pub(super) fn missing(&self) -> MissingComponent {
        let mut component = String::new();
        self.item().write(&mut component);
        MissingComponent { component }
    }
}

/// The URI's authority, or the Host field of a request in origin form.
fn authority(head: Head<'_>) -> Option<String> {
    if head.uri.authority().is_none() {
        let host = head.headers.get(http::header::HOST)?.to_str().ok()?;
        return Some(host.trim().to_ascii_lowercase());
    }
    let origin = Origin::of(head.uri).ok()?;
    Some(match origin.explicit_port() {
        Some(port) => format!("{}:{port}", origin.host()),
        None => origin.host().to_owned(),
    })
}

/// Names in Signature-Input are in lower case (RFC 9421, 2.1).
fn field_name(name: &str) -> Option<HeaderName> {
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    HeaderName::from_bytes(name.as_bytes())
        .ok()
        .filter(|_| is_lower)
}

/// The lines of a field without the blanks around them, joined.
pub(super) fn field(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Option<Vec<&str>> = headers
        .get_all(name)
        .iter()
        .map(|line| line.to_str().ok().map(str::trim))
        .collect();
    lines
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.join(", "))
}
