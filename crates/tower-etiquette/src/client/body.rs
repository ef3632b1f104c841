//! The bodies of the ready-made client.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use http::{HeaderMap, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Full;

use crate::macros::{forward_body, opaque_debug};
use crate::ready::read_up_to;
use crate::{Body, BoxError};

/// A request body: bytes in memory, cheap to clone, so that a request can be sent again after a pause or a redirect.
/// Empty by default.
#[derive(Clone, Default)]
pub struct RequestBody(Full<Bytes>);

impl<T: Into<Bytes>> From<T> for RequestBody {
    fn from(bytes: T) -> Self {
        Self(Full::new(bytes.into()))
    }
}

forward_body!(RequestBody, Infallible);

opaque_debug!(RequestBody);

/// A response body after decompression. It never yields more bytes than the client's `max_body`.
///
/// Dropping it gives the host's permit back.
pub struct ResponseBody {
    body: Body,
    left: u64,
    encoding: &'static Encoding,
}

impl ResponseBody {
    pub(super) fn new(body: Body, max: u64, headers: &HeaderMap) -> Self {
        Self {
            body,
            left: max,
            encoding: encoding(headers),
        }
    }

    /// The whole body, if it has at most `limit` bytes.
    ///
    /// # Errors
    /// [`BodyError::TooLarge`] as soon as more have come, [`BodyError::Incomplete`] when the body ends early or takes
    /// too long.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body.
    pub async fn bytes(self, limit: usize) -> Result<Bytes, BodyError> {
        let bytes = read_up_to(self, limit.saturating_add(1)).await;
        let bytes = bytes.map_err(BodyError::from_box)?;
        if bytes.len() > limit {
            return Err(BodyError::TooLarge);
        }
        Ok(bytes.into())
    }

    /// The whole body as text, if it has at most `limit` bytes. The charset is that of Content-Type, UTF-8 without one;
    /// a byte order mark wins over both. What cannot be decoded becomes U+FFFD.
    ///
    /// # Errors
    /// Those of [`ResponseBody::bytes`].
    pub async fn text(self, limit: usize) -> Result<String, BodyError> {
        let encoding = self.encoding;
        let bytes = self.bytes(limit).await?;
        Ok(encoding.decode(&bytes).0.into_owned())
    }
}

/// The charset parameter of Content-Type.
fn encoding(headers: &HeaderMap) -> &'static Encoding {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .map(|value| value.as_bytes())
        .unwrap_or_default();
    content_type
        .split(|&b| b == b';')
        .skip(1)
        .filter_map(|parameter| {
            let at = parameter.iter().position(|&b| b == b'=')?;
            let (name, value) = (
                parameter[..at].trim_ascii(),
                parameter[at + 1..].trim_ascii(),
            );
            let value = value
                .strip_prefix(b"\"")
                .and_then(|v| v.strip_suffix(b"\""))
                .unwrap_or(value);
            name.eq_ignore_ascii_case(b"charset")
                .then(|| Encoding::for_label(value))
                .flatten()
        })
        .next()
        .unwrap_or(UTF_8)
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            let Some(left) = self.left.checked_sub(bytes) else {
                return Poll::Ready(Some(Err(BodyError::TooLarge.into())));
            };
            self.left = left;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// Why a body could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// It has more bytes than the limit.
    TooLarge,
    /// It ended early or took too long.
    Incomplete(BoxError),
}

impl BodyError {
    fn from_box(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::Incomplete(error),
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the response body is larger than the limit",
            Self::Incomplete(_) => "the response body ended early",
        })
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooLarge => None,
            Self::Incomplete(error) => Some(error.as_ref()),
        }
    }
}
