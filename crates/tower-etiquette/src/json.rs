//! JSON, for the few objects that are written by hand.

use std::fmt::{self, Write};

/// A string in JSON (RFC 8259, 7).
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A JSON object that is being written.
#[derive(Default)]
pub(crate) struct Object(String);

impl Object {
    /// A member whose value is JSON already.
    pub(crate) fn raw(&mut self, name: &str, value: impl fmt::Display) {
        let before = if self.0.is_empty() { '{' } else { ',' };
        // Writing to a string does not fail.
        let _ = write!(self.0, "{before}{}:{value}", Text(name));
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        self.raw(name, Text(value));
    }

    /// A text, or `null`.
    pub(crate) fn optional(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.raw(name, "null"),
        }
    }

    pub(crate) fn finish(self) -> String {
        self.0 + "}"
    }
}
