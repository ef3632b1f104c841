//! The TDM Reservation Protocol (W3C TDMRep Community Group, final report of 2024-05-10).

use etiquette_robots::Pattern;
use http::{HeaderMap, Uri};

/// Whether the rights to mine text and data are reserved, and where the policy for a licence is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tdm {
    /// Reserved or not, where the site says so.
    pub reserved: Option<bool>,
    /// The policy, if the rights are reserved.
    pub policy: Option<String>,
}

/// A rule of `/.well-known/tdmrep.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TdmRule {
    /// The path, with `*` and `$` as in robots.txt.
    pub location: String,
    /// `tdm-reservation`: 1 reserves, 0 does not.
    pub reservation: u64,
    /// `tdm-policy`.
    pub policy: Option<String>,
}

impl TdmRule {
    /// A rule with the members of the file's object.
    #[must_use]
    pub fn new(location: impl Into<String>, reservation: u64, policy: Option<String>) -> Self {
        Self {
            location: location.into(),
            reservation,
            policy,
        }
    }
}

impl Tdm {
    /// Reads `tdm-reservation` and `tdm-policy` of a response. Of several reservations the restrictive one holds.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let reserved = headers
            .get_all("tdm-reservation")
            .iter()
            .filter_map(|value| match value.as_bytes().trim_ascii() {
                b"1" => Some(true),
                b"0" => Some(false),
                _ => None,
            })
            .max();
        let policy = headers
            .get("tdm-policy")
            .and_then(|value| value.to_str().ok());
        Self::new(reserved, policy)
    }

    /// Reads the rules of the well-known file, of which the first that matches the path decides. Nobody fetches that
    /// file of its own accord: it is one more request for each site.
    #[must_use]
    pub fn from_rules(rules: &[TdmRule], path_and_query: &str) -> Self {
        let matches = |rule: &&TdmRule| {
            Pattern::new(rule.location.as_bytes()).matches(path_and_query.as_bytes())
        };
        let Some(rule) = rules.iter().find(matches) else {
            return Self::default();
        };
        let reserved = match rule.reservation {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        Self::new(reserved, rule.policy.as_deref())
    }

    /// This, or `other` where it says nothing: a response overrides the well-known file.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self.reserved.is_some() { self } else { other }
    }

    /// A policy without a reservation is not looked at, nor is one that is no absolute URL.
    fn new(reserved: Option<bool>, policy: Option<&str>) -> Self {
        let policy = policy
            .map(str::trim)
            .filter(|_| reserved == Some(true))
            .filter(|policy| {
                policy
                    .parse::<Uri>()
                    .is_ok_and(|url| crate::Origin::of(&url).is_ok())
            })
            .map(str::to_owned);
        Self { reserved, policy }
    }
}
