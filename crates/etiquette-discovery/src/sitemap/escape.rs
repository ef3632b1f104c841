//! Character references of XML: the five entities and numbers.

use quick_xml::events::BytesStart;

/// `#x0010FFFF;` and some zeros more.
pub(super) const MAX_REFERENCE_NAME: usize = 16;

/// The attribute's value, references replaced.
pub(super) fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    start
        .attributes()
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.into_inner() == name)
        .map(|attribute| unescaped(&attribute.value))
}

/// Text with the five entities of XML and character references replaced, all else as written.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        // The longest reference to a character has eight bytes and a semicolon. Looking no further keeps this linear.
        let known = rest
            .bytes()
            .take(MAX_REFERENCE_NAME)
            .position(|b| b == b';')
            .and_then(|end| Some((referenced(&rest[..end])?, &rest[end + 1..])));
        match known {
            Some((c, after)) => {
                out.push(c);
                rest = after;
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

/// What `&name;` stands for.
pub(super) fn referenced(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    })
}
