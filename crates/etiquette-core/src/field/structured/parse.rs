//! Parsing after RFC 9651, 4.2.

use super::value::{Bare, Item, Member, Parameters, Value};

/// Reads a dictionary: the lines of a field joined with commas. `None` where the RFC says that parsing fails.
///
/// A key that comes again keeps its place and takes the new value.
pub(crate) fn dictionary(field: &[u8]) -> Option<Vec<Member>> {
    let mut input = Input(trim(field));
    let mut members: Vec<Member> = Vec::new();
    while !input.0.is_empty() {
        let key = input.key()?;
        let (value, parameters) = if input.take(b'=') {
            input.value()?
        } else {
            (Value::Item(Bare::Boolean(true)), input.parameters()?)
        };
        match members.iter_mut().find(|member| member.key == key) {
            Some(member) => (member.value, member.parameters) = (value, parameters),
            None => members.push(Member {
                key,
                value,
                parameters,
            }),
        }
        input.skip_ows();
        if input.0.is_empty() {
            break;
        }
        if !input.take(b',') {
            return None;
        }
        input.skip_ows();
        if input.0.is_empty() {
            return None;
        }
    }
    Some(members)
}

fn trim(field: &[u8]) -> &[u8] {
    let mut rest = field;
    while let [b' ', tail @ ..] = rest {
        rest = tail;
    }
    while let [head @ .., b' '] = rest {
        rest = head;
    }
    rest
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn take(&mut self, byte: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| !belongs(byte));
        let (taken, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        taken
    }

    fn skip_ows(&mut self) {
        self.take_while(|byte| matches!(byte, b' ' | b'\t'));
    }

    fn key(&mut self) -> Option<String> {
        if !matches!(self.0.first(), Some(b'a'..=b'z' | b'*')) {
            return None;
        }
        let key = self.take_while(
            |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'),
        );
        Some(String::from_utf8_lossy(key).into_owned())
    }

    fn value(&mut self) -> Option<(Value, Parameters)> {
        let value = if self.take(b'(') {
            Value::List(self.inner_list()?)
        } else {
            Value::Item(self.bare()?)
        };
        Some((value, self.parameters()?))
    }

    /// The rest of an inner list whose parenthesis has been read.
    fn inner_list(&mut self) -> Option<Vec<Item>> {
        let mut items = Vec::new();
        loop {
            self.take_while(|byte| byte == b' ');
            if self.take(b')') {
                return Some(items);
            }
            let bare = self.bare()?;
            let parameters = self.parameters()?;
            items.push(Item { bare, parameters });
            if !matches!(self.0.first(), Some(b' ' | b')')) {
                return None;
            }
        }
    }

    fn parameters(&mut self) -> Option<Parameters> {
        let mut parameters = Parameters::new();
        while self.take(b';') {
            self.take_while(|byte| byte == b' ');
            let key = self.key()?;
            let value = if self.take(b'=') {
                self.bare()?
            } else {
                Bare::Boolean(true)
            };
            match parameters.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = value,
                None => parameters.push((key, value)),
            }
        }
        Some(parameters)
    }

    fn bare(&mut self) -> Option<Bare> {
        match *self.0.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'*' | b'a'..=b'z' | b'A'..=b'Z' => self.token(),
            b':' => self.bytes(),
            b'?' => self.boolean(),
            b'@' => {
                self.next();
                match self.number()? {
                    Bare::Integer(seconds) => Some(Bare::Date(seconds)),
                    _ => None,
                }
            }
            b'%' => self.display_string(),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Bare> {
        let negative = self.take(b'-');
        let signed = |number: i64| if negative { -number } else { number };
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        if whole.is_empty() {
            return None;
        }
        if !self.take(b'.') {
            return (whole.len() <= 15).then(|| Bare::Integer(signed(digits(whole))));
        }
        let fraction = self.take_while(|byte| byte.is_ascii_digit());
        if whole.len() > 12 || fraction.is_empty() || fraction.len() > 3 {
            return None;
        }
        let scale = [0, 100, 10, 1][fraction.len()];
        Some(Bare::Decimal(signed(
            digits(whole) * 1000 + digits(fraction) * scale,
        )))
    }

    fn string(&mut self) -> Option<Bare> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next()? {
                b'"' => return Some(Bare::String(text)),
                b'\\' => match self.next()? {
                    byte @ (b'"' | b'\\') => text.push(byte.into()),
                    _ => return None,
                },
                byte @ 0x20..=0x7e => text.push(byte.into()),
                _ => return None,
            }
        }
    }

    fn token(&mut self) -> Option<Bare> {
        let token = self.take_while(|byte| {
            byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
        });
        Some(Bare::Token(String::from_utf8_lossy(token).into_owned()))
    }

    fn bytes(&mut self) -> Option<Bare> {
        self.next();
        let encoded = self.take_while(|byte| byte != b':');
        if !self.take(b':') {
            return None;
        }
        crate::field::base64::decode(encoded).map(Bare::Bytes)
    }

    fn boolean(&mut self) -> Option<Bare> {
        self.next();
        match self.next()? {
            b'0' => Some(Bare::Boolean(false)),
            b'1' => Some(Bare::Boolean(true)),
            _ => None,
        }
    }

    fn display_string(&mut self) -> Option<Bare> {
        self.next();
        if !self.take(b'"') {
            return None;
        }
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                b'"' => return String::from_utf8(bytes).ok().map(Bare::DisplayString),
                b'%' => bytes.push(hex(self.next()?)? << 4 | hex(self.next()?)?),
                byte @ 0x20..=0x7e => bytes.push(byte),
                _ => return None,
            }
        }
    }
}

/// At most 15 digits, which fit.
fn digits(text: &[u8]) -> i64 {
    text.iter()
        .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}

/// Lower case only (RFC 9651, 4.2.10).
fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameter;
    use super::*;

    fn item(text: &str) -> Option<Bare> {
        let field = format!("a={text}");
        match dictionary(field.as_bytes())?.remove(0).value {
            Value::Item(bare) => Some(bare),
            Value::List(_) => None,
        }
    }

    #[test]
    fn bare_items() {
        for (text, expected) in [
            ("1", Some(Bare::Integer(1))),
            (
                "-999999999999999",
                Some(Bare::Integer(-999_999_999_999_999)),
            ),
            ("1000000000000000", None),
            ("-", None),
            ("1.", None),
            ("1.5", Some(Bare::Decimal(1_500))),
            ("-0.25", Some(Bare::Decimal(-250))),
            ("1.0001", None),
            ("\"a\\\"b\"", Some(Bare::String("a\"b".into()))),
            ("\"a", None),
            ("\"a\\b\"", None),
            ("a:/b", Some(Bare::Token("a:/b".into()))),
            (":aGk=:", Some(Bare::Bytes(b"hi".to_vec()))),
            (":aGk=", None),
            ("?1", Some(Bare::Boolean(true))),
            ("?2", None),
            ("@1659578233", Some(Bare::Date(1_659_578_233))),
            ("@1.5", None),
            ("%\"f%c3%bc\"", Some(Bare::DisplayString("fü".into()))),
            ("%\"%C3\"", None),
            ("é", None),
        ] {
            assert_eq!(item(text), expected, "{text}");
        }
    }

    #[test]
    fn dictionaries() {
        let read = dictionary(b"  a=1;x;y=\"z\" ,\tb , a=(c \"d\";e);f=?0 ").unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].key, "a");
        let Value::List(items) = &read[0].value else {
            panic!("no list")
        };
        assert_eq!(items[0].bare, Bare::Token("c".into()));
        assert_eq!(
            parameter(&items[1].parameters, "e"),
            Some(&Bare::Boolean(true))
        );
        assert_eq!(read[0].parameters, [("f".into(), Bare::Boolean(false))]);
        assert_eq!(read[1].value, Value::Item(Bare::Boolean(true)));
        assert_eq!(dictionary(b""), Some(vec![]));
        for bad in [
            "a,", ",a", "A=1", "a=", "a=(b", "a=(b c", "a=(b)c", "a b", "a=1;", "a;B",
        ] {
            assert_eq!(dictionary(bad.as_bytes()), None, "{bad}");
        }
    }
}
