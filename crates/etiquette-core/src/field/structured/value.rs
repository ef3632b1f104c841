//! What a dictionary holds (RFC 9651, 3).

/// A bare item (RFC 9651, 3.3).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bare {
    Integer(i64),
    /// Thousandths.
    Decimal(i64),
    String(String),
    Token(String),
    Bytes(Vec<u8>),
    Boolean(bool),
    Date(i64),
    DisplayString(String),
}

/// Parameters in order, each name once, with its last value (RFC 9651, 3.1.2).
pub(crate) type Parameters = Vec<(String, Bare)>;

/// An item with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) bare: Bare,
    pub(crate) parameters: Parameters,
}

/// The value of a member of a dictionary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Item(Bare),
    List(Vec<Item>),
}

/// A member of a dictionary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) parameters: Parameters,
}

/// The parameter called `name`.
#[cfg(any(feature = "signatures", test))]
pub(crate) fn parameter<'p>(parameters: &'p Parameters, name: &str) -> Option<&'p Bare> {
    let found = parameters.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value)
}
