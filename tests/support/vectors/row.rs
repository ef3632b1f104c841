//! Reading a row: values as they are expected, or an error that says so.

use std::fmt::{Debug, Display};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

/// Whether a row held; an error says what was expected and what came.
pub type RowResult = Result<(), String>;

/// What a row fails with that names a key, verb or word of which its test does not know what it means.
pub const UNKNOWN: &str = "this test knows no such expectation";

/// Keys with words for the reader, which decide nothing.
const REMARKS: &[&str] = &[
    "basis",
    "behaviour",
    "level",
    "note",
    "rfc",
    "source",
    "title",
    "why",
];

/// Ends of such keys: `level_note`, `crawl_delay_verified_by`, `sitemaps_differs`.
const REMARK_ENDINGS: &[&str] = &["note", "verified_by", "differs"];

/// The failure of a row that names `what`, which its test does not know.
#[must_use]
pub fn unknown(what: impl Display) -> String {
    format!("{UNKNOWN}: {what}")
}

/// What may stand at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON has no more")]
pub enum Kind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// True or false.
    Flag,
    /// A list.
    List,
    /// An object.
    Object,
    /// Whatever its reader makes of it.
    Any,
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::Any => true,
        }
    }
}

/// Fails where `value`, which stands at `place`, has a key that is neither in `known` nor a remark for the reader, or
/// something else than that key takes. What is `null` is as if it were absent.
///
/// # Errors
/// [`UNKNOWN`] with the key, or with what stands there instead of an object.
pub fn only_keys(value: &Value, place: &str, known: &[(&str, Kind)]) -> RowResult {
    let object = match value {
        Value::Null => return Ok(()),
        Value::Object(object) => object,
        other => return Err(unknown(format_args!("{place} is {other}"))),
    };
    for (key, value) in object {
        let is_remark = REMARKS.contains(&key.as_str())
            || REMARK_ENDINGS.iter().any(|ending| key.ends_with(ending));
        match known.iter().find(|(known, _)| known == key) {
            Some((_, kind)) if value.is_null() || kind.fits(value) => {}
            Some((_, kind)) => {
                let wrong = format_args!("{key} of {place} is {value}, no {kind:?}").to_string();
                return Err(unknown(wrong));
            }
            None if is_remark => {}
            None => return Err(unknown(format_args!("the key {key:?} of {place}"))),
        }
    }
    Ok(())
}

/// Fails unless both are the same.
///
/// # Errors
/// With both of them.
pub fn same<E, C>(expected: &E, came: &C) -> RowResult
where
    E: PartialEq<C> + Debug + ?Sized,
    C: Debug + ?Sized,
{
    if expected == came {
        Ok(())
    } else {
        Err(format!("expected {expected:?}, came {came:?}"))
    }
}

/// What stands at `key` of `value`, unless it is absent or `null`.
#[must_use]
pub fn optional<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|found| !found.is_null())
}

fn read<'v, T>(
    value: &'v Value,
    key: &str,
    what: &str,
    read: impl FnOnce(&'v Value) -> Option<T>,
) -> Result<T, String> {
    let found = value.get(key).unwrap_or(&Value::Null);
    read(found).ok_or_else(|| unknown(format_args!("{key} is {found}, and no {what}")))
}

/// The text at `key`.
///
/// # Errors
/// [`UNKNOWN`] where there is none; likewise the other functions that read a value.
pub fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str, String> {
    read(value, key, "text", Value::as_str)
}

/// The number at `key`.
///
/// # Errors
/// As [`text`].
pub fn number(value: &Value, key: &str) -> Result<f64, String> {
    read(value, key, "number", Value::as_f64)
}

/// The whole number at `key`.
///
/// # Errors
/// As [`text`], and where it does not fit.
pub fn whole<T: TryFrom<u64>>(value: &Value, key: &str) -> Result<T, String> {
    read(value, key, "whole number that fits", |found| {
        T::try_from(found.as_u64()?).ok()
    })
}

/// The list at `key`.
///
/// # Errors
/// As [`text`].
pub fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], String> {
    read(value, key, "list", |found| {
        found.as_array().map(Vec::as_slice)
    })
}

/// The object at `key`.
///
/// # Errors
/// As [`text`].
pub fn object<'v>(value: &'v Value, key: &str) -> Result<&'v Map<String, Value>, String> {
    read(value, key, "object", Value::as_object)
}

/// `value` itself, which has to be a text.
///
/// # Errors
/// As [`text`].
pub fn any_text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| unknown(format_args!("{value} is no text")))
}

/// Header fields: an object of names, each with one line or a list of lines. `null` stands for none.
///
/// # Errors
/// [`UNKNOWN`] for what is no header field.
pub fn headers(fields: &Value) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let fields = match fields {
        Value::Null => return Ok(headers),
        Value::Object(fields) => fields,
        other => return Err(unknown(format_args!("{other} are no header fields"))),
    };
    for (name, lines) in fields {
        let wrong = || unknown(format_args!("the header field {name}: {lines}"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let lines = match lines {
            Value::Array(lines) => lines.as_slice(),
            line => std::slice::from_ref(line),
        };
        for line in lines {
            let line = line.as_str().ok_or_else(wrong)?;
            let line = HeaderValue::from_bytes(line.as_bytes()).map_err(|_| wrong())?;
            headers.append(key.clone(), line);
        }
    }
    Ok(headers)
}

/// The same row with our words for those of the vectors: keys, and texts that are one of the words as a whole. `words` is
/// a table of the vectors' word and ours.
#[must_use]
pub fn in_our_words(value: &Value, words: &[(&str, &str)]) -> Value {
    let ours = |word: &str| {
        words
            .iter()
            .find(|(theirs, _)| *theirs == word)
            .map_or(word, |(_, ours)| ours)
            .to_owned()
    };
    match value {
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| (ours(key), in_our_words(value, words)))
            .collect(),
        Value::Array(list) => list.iter().map(|one| in_our_words(one, words)).collect(),
        Value::String(text) => ours(text).into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_keys_are_an_error_and_remarks_are_none() {
        let row = json!({"id": "x", "why": "y", "level_note": "z", "expect": 1});
        let known = [("id", Kind::Text), ("expect", Kind::Number)];
        assert_eq!(only_keys(&row, "the row", &known), Ok(()));
        let error = only_keys(&row, "the row", &known[..1]).unwrap_err();
        assert_eq!(
            error,
            "this test knows no such expectation: the key \"expect\" of the row"
        );
        assert_eq!(only_keys(&Value::Null, "config", &[]), Ok(()));
        assert!(only_keys(&json!(1), "config", &[]).is_err());
        let error = only_keys(&row, "the row", &[known[0], ("expect", Kind::List)]);
        assert!(error.unwrap_err().starts_with(UNKNOWN));
    }

    #[test]
    fn words_are_replaced_as_keys_and_as_texts() {
        let row = json!({"gap": 1, "list": [{"kind": "held"}, "held by a rope"]});
        let words = &[("gap", "delay"), ("held", "unread")];
        assert_eq!(
            in_our_words(&row, words),
            json!({"delay": 1, "list": [{"kind": "unread"}, "held by a rope"]})
        );
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let row = json!({"n": -1, "headers": {"a b": "c"}});
        for error in [
            text(&row, "n").unwrap_err(),
            whole::<u64>(&row, "n").unwrap_err(),
            list(&row, "m").unwrap_err(),
            headers(&row["headers"]).unwrap_err(),
        ] {
            assert!(error.starts_with(UNKNOWN), "{error}");
        }
        let fields = headers(&json!({"a": ["b", "c"]})).unwrap();
        assert_eq!(fields.get_all("a").iter().count(), 2);
    }
}
