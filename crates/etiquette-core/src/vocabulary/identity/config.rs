//! Identities from configuration files, in whatever format serde reads.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::builder::Style;
use super::value::Identity;

/// The fields of an identity, named as the builder's methods.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    token: String,
    version: String,
    url: String,
    user_token: Option<String>,
    contact: Option<String>,
    purpose: Option<String>,
    comment: Option<String>,
    #[serde(default)]
    products: Vec<String>,
    #[serde(default)]
    style: StyleName,
    max_len: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StyleName {
    #[default]
    Compatible,
    Product,
}

/// Reads `token`, `version` and `url`, and optionally `user_token`, `contact`, `purpose`, `comment`, `products`, `style`
/// (`"compatible"` or `"product"`) and `max_len`. Errors name the field and what is wrong with it.
impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let config = Config::deserialize(deserializer)?;
        let mut builder =
            Self::builder(config.token, config.version, config.url).style(match config.style {
                StyleName::Compatible => Style::Compatible,
                StyleName::Product => Style::Product,
            });
        if let Some(token) = config.user_token {
            builder = builder.user_token(token);
        }
        if let Some(contact) = config.contact {
            builder = builder.contact(contact);
        }
        if let Some(purpose) = config.purpose {
            builder = builder.purpose(purpose);
        }
        if let Some(comment) = config.comment {
            builder = builder.comment(comment);
        }
        if let Some(bytes) = config.max_len {
            builder = builder.max_len(bytes);
        }
        for product in config.products {
            builder = builder.product(product);
        }
        builder.build().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(extra: &str) -> Result<Identity, String> {
        let text = format!(
            r#"{{"token": "ExampleBot", "version": "0.1", "url": "https://www.example.com/bot.html"{extra}}}"#
        );
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_and_errors_have_their_names() {
        let identity = read(r#", "user_token": "Example-User", "style": "product""#).unwrap();
        let name = identity.user_agent(crate::PurposeKind::UserFetch);
        assert_eq!(name, "Example-User/0.1 (https://www.example.com/bot.html)");
        for (extra, told) in [
            (r#", "user_token": "ExampleBot""#, "the user token contains"),
            (r#", "contact": "nobody""#, "the contact is no mail address"),
            (r#", "tokn": "x""#, "unknown field `tokn`"),
            (r#", "style": "browser""#, "unknown variant `browser`"),
        ] {
            let error = read(extra).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
