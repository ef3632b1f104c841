//! Under which name an example asks, and whom it may ask so.

use std::fmt;

use clap::Args;
use http::Uri;
use tower_etiquette::Identity;
use tower_etiquette::identity::{Builder, InvalidIdentity};

/// The name towards sites of one's own, which have nobody who could wonder about it.
const TOKEN: &str = "ExampleBot";
const VERSION: &str = "0.1";
const INFO: &str = "https://www.example.com/bot.html";

/// The name that sites see.
#[derive(Clone, Debug, Default, Args)]
#[non_exhaustive]
pub struct Named {
    /// The name that sites can address in robots.txt. Required unless all targets are loopback.
    #[arg(long, value_name = "T")]
    pub token: Option<String>,
    /// The version behind the name.
    #[arg(long, value_name = "V")]
    pub bot_version: Option<String>,
    /// A page that says what this program is and how to stop it.
    #[arg(long, value_name = "U")]
    pub info_url: Option<String>,
    /// A mailbox for operators of the sites, sent as From.
    #[arg(long, value_name = "MAIL")]
    pub contact: Option<String>,
}

/// Why an example does not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unnamed {
    /// The URL belongs to somebody, and these options are missing.
    Missing(String, Vec<&'static str>),
    /// The name is not one that sites could use.
    Invalid(InvalidIdentity),
}

impl fmt::Display for Unnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(url, options) => f.write_str(&belongs_to_somebody(url, options)),
            Self::Invalid(_) => f.write_str("the name is not valid"),
        }
    }
}

impl std::error::Error for Unnamed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Missing(..) => None,
            Self::Invalid(cause) => Some(cause),
        }
    }
}

impl Named {
    /// The identity for requests to `targets`. Made up only where nobody else is asked.
    ///
    /// # Errors
    /// [`Unnamed`] when a target is not loopback and the name is not complete, or when it is not valid.
    pub fn identity<'a>(
        &self,
        targets: impl IntoIterator<Item = &'a Uri>,
    ) -> Result<Identity, Unnamed> {
        let missing = self.missing();
        if !missing.is_empty()
            && let Some(target) = targets.into_iter().find(|uri| !is_loopback(uri))
        {
            return Err(Unnamed::Missing(target.to_string(), missing));
        }
        self.builder().build().map_err(Unnamed::Invalid)
    }

    /// The options that a site of somebody else's needs, and that are not given.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        [
            ("--token", &self.token),
            ("--bot-version", &self.bot_version),
            ("--info-url", &self.info_url),
        ]
        .into_iter()
        .filter(|(_, value)| value.is_none())
        .map(|(option, _)| option)
        .collect()
    }

    /// The name as given, made up where it is not.
    pub(crate) fn builder(&self) -> Builder {
        let or =
            |given: &Option<String>, default: &str| given.clone().unwrap_or(default.to_owned());
        let builder = Identity::builder(
            or(&self.token, TOKEN),
            or(&self.bot_version, VERSION),
            or(&self.info_url, INFO),
        );
        match &self.contact {
            Some(contact) => builder.contact(contact.as_str()),
            None => builder,
        }
    }
}

/// Why the site at `url` is not asked without these options.
pub(crate) fn belongs_to_somebody(url: &str, missing: &[&str]) -> String {
    format!(
        "{url} belongs to somebody: give {}, so that its operator can see who comes",
        missing.join(", ")
    )
}

/// Whether a URL names this machine.
pub(crate) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || literal
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_meets_a_made_up_name() {
        let own: Uri = "http://127.0.0.1:8080/".parse().unwrap();
        let other: Uri = "https://site.example/".parse().unwrap();
        let nameless = Named::default();
        assert_eq!(
            nameless.identity([&own]).unwrap().token().as_str(),
            "ExampleBot"
        );
        assert!(matches!(
            nameless.identity([&own, &other]),
            Err(Unnamed::Missing(..))
        ));
        let named = Named {
            token: Some("OtherBot".into()),
            bot_version: Some("2".into()),
            info_url: Some("https://www.example.org/bot".into()),
            contact: None,
        };
        assert_eq!(
            named.identity([&other]).unwrap().token().as_str(),
            "OtherBot"
        );
    }
}
