//! Hosts: names, international names, IPv4 in all its spellings, IPv6.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::BadReference;

/// The longest label and name that the DNS can hold.
const MAX_LABEL: usize = 63;
const MAX_NAME: usize = 253;

/// Writes the one form of `host`, which may be percent-encoded.
pub(super) fn write(out: &mut String, host: &str) -> Result<(), BadReference> {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or(BadReference::Host)?;
        let address: Ipv6Addr = inner.parse().map_err(|_| BadReference::Host)?;
        out.push('[');
        match address.to_ipv4_mapped() {
            // The standard writes pieces where std writes a dotted tail.
            Some(_) => {
                let [.., high, low] = address.segments();
                out.push_str(&format!("::ffff:{high:x}:{low:x}"));
            }
            None => out.push_str(&address.to_string()),
        }
        out.push(']');
        return Ok(());
    }
    let decoded;
    let host = if host.contains('%') {
        decoded = percent_decoded(host).ok_or(BadReference::Host)?;
        decoded.as_str()
    } else {
        host
    };
    let name = if host.is_ascii() {
        host.to_ascii_lowercase()
    } else {
        international(host).ok_or(BadReference::Host)?
    };
    if name.is_empty() || name.len() > MAX_NAME + 1 || name.bytes().any(forbidden) {
        return Err(BadReference::Host);
    }
    if ends_in_number(&name) {
        let address = ipv4(&name).ok_or(BadReference::Host)?;
        out.push_str(&address.to_string());
    } else {
        out.push_str(&name);
    }
    Ok(())
}

/// Bytes that no domain holds. A few more than the URL Standard forbids: those that http's URI refuses too.
fn forbidden(byte: u8) -> bool {
    !(byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
        ))
}

fn percent_decoded(host: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(host.len());
    let mut rest = host.as_bytes();
    while let [first, tail @ ..] = rest {
        let pair = match rest {
            [b'%', high, low, ..] => char::from(*high)
                .to_digit(16)
                .zip(char::from(*low).to_digit(16)),
            _ => None,
        };
        if let Some((high, low)) = pair {
            bytes.push(u8::try_from(high * 16 + low).ok()?);
            rest = &rest[3..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether the last label is a number, which makes the whole host an IPv4 address or nothing.
fn ends_in_number(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    if last.is_empty() {
        return false;
    }
    last.bytes().all(|b| b.is_ascii_digit())
        || last
            .strip_prefix("0x")
            .is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// One to four numbers, decimal, octal or hexadecimal; the last fills the bytes that are left.
fn ipv4(name: &str) -> Option<Ipv4Addr> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut numbers = Vec::with_capacity(4);
    for part in name.split('.') {
        if numbers.len() == 4 {
            return None;
        }
        numbers.push(number(part)?);
    }
    let (last, leading) = numbers.split_last()?;
    let mut address = 0u64;
    for (at, value) in leading.iter().enumerate() {
        if *value > 255 {
            return None;
        }
        address |= value << (8 * (3 - at));
    }
    if *last >= 1 << (8 * (4 - leading.len())) {
        return None;
    }
    Some(Ipv4Addr::from(u32::try_from(address | last).ok()?))
}

fn number(part: &str) -> Option<u64> {
    let (digits, radix) = if let Some(hex) = part.strip_prefix("0x") {
        (hex, 16)
    } else if part.len() > 1 && part.starts_with('0') {
        (&part[1..], 8)
    } else {
        (part, 10)
    };
    if part.is_empty() {
        return None;
    }
    if digits.is_empty() {
        return Some(0);
    }
    // A sign would be accepted by the parser of std.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// The ASCII form of an international name, or nothing where mapping tables would be needed to know it.
fn international(host: &str) -> Option<String> {
    let mut out = String::with_capacity(host.len() + 8);
    // The ideographic full stop separates labels too.
    for (at, label) in host.split(['.', '\u{3002}']).enumerate() {
        if at > 0 {
            out.push('.');
        }
        if label.is_ascii() {
            out.push_str(&label.to_ascii_lowercase());
            continue;
        }
        let label: Vec<char> = label.chars().flat_map(char::to_lowercase).collect();
        if label.iter().all(char::is_ascii) {
            out.extend(label);
            continue;
        }
        let mapped = label.iter().all(|&c| is_plain(c));
        // "xn--" in front of more than ASCII and hyphens in odd places are refused by the mapping.
        let odd = label.first() == Some(&'-')
            || label.last() == Some(&'-')
            || (label.get(2) == Some(&'-') && label.get(3) == Some(&'-'));
        if !mapped || odd {
            return None;
        }
        let start = out.len();
        out.push_str("xn--");
        punycode(&mut out, &label)?;
        if out.len() - start > MAX_LABEL {
            return None;
        }
    }
    Some(out)
}

/// Letters that stay themselves under the mapping of international names and under composition, in any order: checked
/// one by one against the tables in the tests.
fn is_plain(c: char) -> bool {
    matches!(c,
        'a'..='z' | '0'..='9' | '-'
        // Latin: composed letters, without the ligatures and the long s, which are mapped.
        | '\u{DF}'..='\u{F6}' | '\u{F8}'..='\u{131}' | '\u{134}'..='\u{13E}' | '\u{142}'..='\u{148}'
        | '\u{14A}'..='\u{17E}'
        // Greek and Cyrillic.
        | '\u{3AC}'..='\u{3CE}' | '\u{430}'..='\u{45F}'
        // Kana, Han, Hangul.
        | '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{30FC}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}'
    )
}

/// RFC 3492, 6.3.
fn punycode(out: &mut String, label: &[char]) -> Option<()> {
    const BASE: u32 = 36;
    const T_MIN: u32 = 1;
    const T_MAX: u32 = 26;

    // A label of the DNS never encodes more; the bound keeps the two loops below small.
    if label.len() > MAX_LABEL {
        return None;
    }
    let basic = label.iter().filter(|c| c.is_ascii()).count();
    out.extend(label.iter().filter(|c| c.is_ascii()));
    if basic > 0 {
        out.push('-');
    }
    let mut handled = u32::try_from(basic).ok()?;
    let basic = handled;
    let total = u32::try_from(label.len()).ok()?;
    let mut code = 128u32;
    let mut delta = 0u32;
    let mut bias = 72u32;
    while handled < total {
        let next = label
            .iter()
            .map(|&c| u32::from(c))
            .filter(|&c| c >= code)
            .min()?;
        delta = delta.checked_add((next - code).checked_mul(handled + 1)?)?;
        code = next;
        for c in label.iter().map(|&c| u32::from(c)) {
            if c < code {
                delta = delta.checked_add(1)?;
            }
            if c != code {
                continue;
            }
            let mut q = delta;
            let mut k = BASE;
            loop {
                let t = k.saturating_sub(bias).clamp(T_MIN, T_MAX);
                if q < t {
                    break;
                }
                out.push(digit(t + (q - t) % (BASE - t)));
                q = (q - t) / (BASE - t);
                k += BASE;
            }
            out.push(digit(q));
            bias = adapt(delta, handled + 1, handled == basic);
            delta = 0;
            handled += 1;
        }
        delta += 1;
        code += 1;
    }
    Some(())
}

fn adapt(delta: u32, points: u32, first: bool) -> u32 {
    let mut delta = if first { delta / 700 } else { delta / 2 };
    delta += delta / points;
    let mut k = 0;
    while delta > 455 {
        delta /= 35;
        k += 36;
    }
    k + 36 * delta / (delta + 38)
}

fn digit(value: u32) -> char {
    let value = u8::try_from(value).expect("a digit of base 36 is below 36");
    char::from(if value < 26 {
        b'a' + value
    } else {
        b'0' + value - 26
    })
}
