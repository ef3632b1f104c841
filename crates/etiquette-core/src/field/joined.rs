//! The lines of one field as one value.

/// Joins the lines of a field with commas (RFC 9110, 5.3).
pub(crate) fn joined<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        if at > 0 {
            joined.extend_from_slice(b", ");
        }
        joined.extend_from_slice(line);
    }
    joined
}
