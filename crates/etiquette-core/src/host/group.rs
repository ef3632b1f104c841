//! Which origins share one budget.

use std::fmt;
use std::sync::Arc;

use crate::Origin;

/// Which origins share one budget. robots.txt is always read for each origin.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum GroupBy {
    /// The host name, whatever scheme and port: most likely one machine. The default.
    #[default]
    Host,
    /// The host name with its port, where that is not the scheme's default.
    Authority,
    /// A name that a function gives to the origin, for example an address from a table.
    Function(Arc<dyn Fn(&Origin) -> String + Send + Sync>),
}

impl GroupBy {
    /// Groups by the name that `f` gives to an origin.
    #[must_use]
    pub fn function(f: impl Fn(&Origin) -> String + Send + Sync + 'static) -> Self {
        Self::Function(Arc::new(f))
    }

    /// Hands the group's name to `f`; borrowed where it stands in the origin.
    pub fn name<T>(&self, origin: &Origin, f: impl FnOnce(&str) -> T) -> T {
        match self {
            Self::Host => f(origin.host()),
            Self::Authority => match origin.explicit_port() {
                Some(port) => f(&format!("{}:{port}", origin.host())),
                None => f(origin.host()),
            },
            Self::Function(name) => f(&name(origin)),
        }
    }
}

impl fmt::Debug for GroupBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "Host",
            Self::Authority => "Authority",
            Self::Function(_) => "Function(..)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_groups() {
        let name = |by: &GroupBy, uri: &str| {
            let origin = Origin::of(&uri.parse().unwrap()).unwrap();
            by.name(&origin, str::to_owned)
        };
        assert_eq!(name(&GroupBy::Host, "https://A.example:8443/"), "a.example");
        let authority = GroupBy::Authority;
        assert_eq!(
            name(&authority, "https://a.example:8443/"),
            "a.example:8443"
        );
        assert_eq!(name(&authority, "http://a.example:80/"), "a.example");
        let function = GroupBy::function(|origin| format!("{}!", origin.host()));
        assert_eq!(name(&function, "http://a.example/"), "a.example!");
    }
}
