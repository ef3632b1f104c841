//! Writing after RFC 9651, 4.1.

use std::fmt::Write;

use super::value::{Bare, Item, Member, Parameters, Value};

impl Bare {
    /// Appends the item. What it holds was parsed, or is checked by whoever makes it.
    pub(crate) fn write(&self, out: &mut String) {
        // Writing to a string does not fail.
        let _ = match self {
            Self::Integer(number) => write!(out, "{number}"),
            Self::Decimal(thousandths) => {
                let (sign, value) = (if *thousandths < 0 { "-" } else { "" }, thousandths.abs());
                let fraction = format!("{:03}", value % 1000);
                let fraction = match fraction.trim_end_matches('0') {
                    "" => "0",
                    kept => kept,
                };
                write!(out, "{sign}{}.{fraction}", value / 1000)
            }
            Self::String(text) => {
                out.push('"');
                for character in text.chars() {
                    if matches!(character, '"' | '\\') {
                        out.push('\\');
                    }
                    out.push(character);
                }
                out.push('"');
                Ok(())
            }
            Self::Token(token) => write!(out, "{token}"),
            Self::Bytes(bytes) => write!(out, ":{}:", crate::field::base64::encode(bytes)),
            Self::Boolean(value) => write!(out, "?{}", u8::from(*value)),
            Self::Date(seconds) => write!(out, "@{seconds}"),
            Self::DisplayString(text) => {
                out.push_str("%\"");
                for byte in text.bytes() {
                    if matches!(byte, b'%' | b'"' | 0..=0x1f | 0x7f..) {
                        let _ = write!(out, "%{byte:02x}");
                    } else {
                        out.push(byte.into());
                    }
                }
                out.push('"');
                Ok(())
            }
        };
    }
}

impl Item {
    pub(crate) fn write(&self, out: &mut String) {
        self.bare.write(out);
        parameters(&self.parameters, out);
    }
}

impl Member {
    /// Appends the value with its parameters, without the key.
    pub(crate) fn write_value(&self, out: &mut String) {
        match &self.value {
            Value::Item(bare) => bare.write(out),
            Value::List(items) => inner_list(items, out),
        }
        parameters(&self.parameters, out);
    }
}

pub(crate) fn inner_list(items: &[Item], out: &mut String) {
    out.push('(');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        item.write(out);
    }
    out.push(')');
}

pub(crate) fn parameters(parameters: &Parameters, out: &mut String) {
    for (name, value) in parameters {
        out.push(';');
        out.push_str(name);
        if *value != Bare::Boolean(true) {
            out.push('=');
            value.write(out);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn writes_what_it_read() {
        for text in [
            "1",
            "-5",
            "1.5",
            "-0.25",
            "1.0",
            "\"a\\\"b\\\\\"",
            "a:/b",
            ":aGk=:",
            "?0",
            "@5",
            "%\"f%c3%bc%25\"",
            "(a \"b\";c);d=1;e=?0",
            "()",
        ] {
            let field = format!("k={text}");
            let mut written = String::new();
            super::super::dictionary(field.as_bytes()).unwrap()[0].write_value(&mut written);
            assert_eq!(written, text);
        }
    }
}
