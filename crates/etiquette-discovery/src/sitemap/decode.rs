//! From bytes to text: one layer of gzip that is the file itself, then the encoding.

use std::io::Write;

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::write::MultiGzDecoder;

/// Compressed bytes are fed in pieces of this size, so that what a piece expands to (at most a thousandfold) is small.
const PIECE: usize = 256;
const PLAIN_PIECE: usize = 16 * 1024;
/// How much of the beginning decides on the encoding.
const HEAD: usize = 512;

/// Takes bytes, gives text.
#[derive(Debug, Default)]
pub(super) struct Decode {
    gzip: Gzip,
    /// The bytes that decide on what follows: two for gzip, then [`HEAD`] for the encoding.
    waiting: Vec<u8>,
    to_text: Option<ToText>,
    bytes: u64,
    broken: bool,
    gunzipped: bool,
}

#[derive(Debug, Default)]
enum Gzip {
    #[default]
    Unknown,
    No,
    Yes(Box<MultiGzDecoder<Vec<u8>>>),
    /// Broken, or followed by what is no gzip: nothing more is read.
    Over,
}

impl Decode {
    /// Bytes so far, after gzip and before the encoding.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the gzip file was cut or broken.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether the file itself was gzip.
    pub(super) fn is_gunzipped(&self) -> bool {
        self.gunzipped
    }

    /// Takes a piece off the front of `input` and appends what it decodes to. The piece is small enough for `text` to
    /// grow by less than a megabyte.
    pub(super) fn step(&mut self, input: &mut &[u8], text: &mut String) {
        let most = match self.gzip {
            Gzip::Unknown => 2 - self.waiting.len(),
            Gzip::Yes(_) => PIECE,
            Gzip::No | Gzip::Over => PLAIN_PIECE,
        };
        let (piece, rest) = input.split_at(most.min(input.len()));
        *input = rest;
        match &mut self.gzip {
            Gzip::Unknown => {
                self.waiting.extend_from_slice(piece);
                if self.waiting.len() < 2 {
                    return;
                }
                let magic = std::mem::take(&mut self.waiting);
                if magic == [0x1f, 0x8b] {
                    self.gunzipped = true;
                    self.gzip = Gzip::Yes(Box::new(MultiGzDecoder::new(Vec::new())));
                    self.gunzip(&magic, text);
                } else {
                    self.gzip = Gzip::No;
                    self.plain(&magic, text);
                }
            }
            Gzip::Yes(_) => self.gunzip(piece, text),
            Gzip::No => self.plain(piece, text),
            Gzip::Over => {}
        }
    }

    /// Takes a piece off the front of `input` that is text as it stands. `None` where it has to be decoded, by
    /// [`step`](Self::step): gzip, another encoding than UTF-8, a character that is cut or malformed.
    pub(super) fn direct<'a>(&mut self, input: &mut &'a [u8]) -> Option<&'a str> {
        match (&self.gzip, &self.to_text) {
            (Gzip::No, Some(ToText::Utf8 { cut })) if cut.is_empty() => {}
            _ => return None,
        }
        let piece = &input[..PLAIN_PIECE.min(input.len())];
        let text = match std::str::from_utf8(piece) {
            Ok(text) => text,
            Err(_) => piece.utf8_chunks().next()?.valid(),
        };
        *input = &input[text.len()..];
        self.bytes += text.len() as u64;
        (!text.is_empty()).then_some(text)
    }

    /// No more bytes come: appends what waited.
    pub(super) fn finish(&mut self, text: &mut String) {
        if let Gzip::Yes(mut decoder) = std::mem::replace(&mut self.gzip, Gzip::Over) {
            self.broken |= decoder.try_finish().is_err();
            let rest = std::mem::take(decoder.get_mut());
            self.plain(&rest, text);
        }
        let head = std::mem::take(&mut self.waiting);
        self.decode(&head, true, text);
    }

    fn gunzip(&mut self, piece: &[u8], text: &mut String) {
        let Gzip::Yes(decoder) = &mut self.gzip else {
            return;
        };
        let failed = decoder
            .write_all(piece)
            .and_then(|()| decoder.flush())
            .is_err();
        let mut decoded = std::mem::take(decoder.get_mut());
        self.plain(&decoded, text);
        if failed {
            self.broken = true;
            self.gzip = Gzip::Over;
        } else if let Gzip::Yes(decoder) = &mut self.gzip {
            decoded.clear();
            *decoder.get_mut() = decoded;
        }
    }

    fn plain(&mut self, bytes: &[u8], text: &mut String) {
        self.bytes += bytes.len() as u64;
        if self.to_text.is_some() {
            self.decode(bytes, false, text);
            return;
        }
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= HEAD {
            let head = std::mem::take(&mut self.waiting);
            self.decode(&head, false, text);
        }
    }

    fn decode(&mut self, bytes: &[u8], last: bool, text: &mut String) {
        match self.to_text.get_or_insert_with(|| ToText::of(bytes)) {
            ToText::Utf8 { cut } if cut.is_empty() => utf8(bytes, last, text, cut),
            ToText::Utf8 { cut } => {
                let mut whole = std::mem::take(cut);
                whole.extend_from_slice(bytes);
                utf8(&whole, last, text, cut);
            }
            ToText::Other(decoder) => {
                let room = decoder.max_utf8_buffer_length(bytes.len());
                text.reserve(room.unwrap_or(4 * bytes.len() + 16));
                // Malformed sequences become replacement characters, which no URI of the site holds.
                let _ = decoder.decode_to_string(bytes, text, last);
            }
        }
    }
}

/// How bytes become text. UTF-8, which nearly all sitemaps are in, needs no conversion.
#[derive(Debug)]
enum ToText {
    Utf8 {
        /// The beginning of a character that the next piece completes.
        cut: Vec<u8>,
    },
    Other(Box<Decoder>),
}

impl ToText {
    fn of(head: &[u8]) -> Self {
        let encoding = encoding_of(head);
        if encoding == UTF_8 {
            // A byte order mark is white space to the reader.
            Self::Utf8 { cut: Vec::new() }
        } else {
            Self::Other(Box::new(encoding.new_decoder_with_bom_removal()))
        }
    }
}

/// Appends UTF-8, malformed sequences as replacement characters; a character that is not complete goes to `cut`.
fn utf8(bytes: &[u8], last: bool, text: &mut String, cut: &mut Vec<u8>) {
    let mut rest = bytes;
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(valid) => return text.push_str(valid),
            Err(error) => error,
        };
        let (valid, after) = rest.split_at(error.valid_up_to());
        text.push_str(&String::from_utf8_lossy(valid));
        match error.error_len() {
            None if !last => return cut.extend_from_slice(after),
            None => return text.push('\u{FFFD}'),
            Some(length) => {
                text.push('\u{FFFD}');
                rest = &after[length..];
            }
        }
    }
}

/// Byte order mark, else the XML declaration, else UTF-8, which sitemaps must be in.
fn encoding_of(head: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return encoding;
    }
    let declared = head
        .trim_ascii_start()
        .strip_prefix(b"<?xml")
        .and_then(|rest| {
            let end = rest.iter().position(|b| *b == b'>')?;
            let rest = &rest[..end];
            let at = rest.windows(8).position(|w| w == b"encoding")?;
            let rest = rest[at + 8..]
                .trim_ascii_start()
                .strip_prefix(b"=")?
                .trim_ascii_start();
            let (quote, rest) = rest.split_first()?;
            let end = rest.iter().position(|b| b == quote)?;
            Encoding::for_label(&rest[..end])
        });
    match declared {
        // A declaration that could be read as ASCII is none of UTF-16.
        Some(wide) if wide == UTF_16LE || wide == UTF_16BE => UTF_8,
        Some(encoding) => encoding,
        None => UTF_8,
    }
}
