//! The body of an answer: piece by piece, each at its time, each noted in the log.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::answer::{Answer, Fault};
use super::log::{Index, Log};

/// A request that is being answered; its end is noted when it is dropped.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) log: Log,
    pub(super) index: Index,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.log.ended(self.index);
    }
}

/// The body of a site's answer. Its pieces come at instants that count from the head, whenever it is polled. Each byte is
/// noted when it is taken, the end when it comes or the body is dropped.
#[derive(Debug)]
pub struct SiteBody {
    /// Each with the instant before which it does not come.
    pieces: VecDeque<(Instant, Bytes)>,
    /// The instant before which the end does not come, unless it comes with the last piece.
    end: Option<Instant>,
    /// Whether an error comes in place of the end.
    broken: bool,
    length: Option<u64>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Dropped, and so ended in the log, with the last byte.
    exchange: Option<Exchange>,
}

/// The head of `answer` and its body, once the time of the head has come.
///
/// # Errors
/// An answer without a head.
///
/// # Panics
/// Where the answer is a panic.
pub(super) async fn respond(
    answer: Answer,
    exchange: Exchange,
) -> Result<Response<SiteBody>, io::Error> {
    if !answer.before_head.is_zero() {
        sleep(answer.before_head).await;
    }
    match answer.fault {
        Some(Fault::HangUp) => return Err(io::Error::other("the site hangs up")),
        Some(Fault::Never) => std::future::pending().await,
        // Without the panic hook, which would fill the output of the tests.
        Some(Fault::Panic) => std::panic::resume_unwind(Box::new("the site panics as told")),
        Some(Fault::BrokenBody) | None => {}
    }
    exchange
        .log
        .answered(exchange.index, answer.status, &answer.headers);
    let answer = match answer.status {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => answer.without_body(),
        _ => answer,
    };
    let length = answer.length();
    let mut due = Instant::now();
    let pieces = answer.body.into_iter().map(|piece| {
        due += piece.after;
        (due, piece.bytes)
    });
    let mut body = SiteBody {
        pieces: pieces.collect(),
        end: None,
        broken: answer.fault == Some(Fault::BrokenBody),
        length,
        sleep: None,
        exchange: Some(exchange),
    };
    body.end = (!answer.before_end.is_zero()).then(|| due + answer.before_end);
    body.note_end();
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    Ok(response)
}

impl SiteBody {
    /// Notes the end in the log where nothing is to come.
    fn note_end(&mut self) {
        if self.is_end_stream() {
            self.exchange = None;
        }
    }

    fn poll_until(&mut self, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if due > Instant::now() {
            let timer = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
            ready!(timer.as_mut().poll(cx));
        }
        self.sleep = None;
        Poll::Ready(())
    }
}

impl Body for SiteBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        if let Some((due, bytes)) = this.pieces.front().cloned() {
            ready!(this.poll_until(due, cx));
            this.pieces.pop_front();
            if let Some(exchange) = &this.exchange {
                exchange.log.sent(exchange.index, bytes.len());
            }
            this.length = this.length.map(|length| length - bytes.len() as u64);
            this.note_end();
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if let Some(end) = this.end {
            ready!(this.poll_until(end, cx));
            this.end = None;
        }
        let broken = std::mem::take(&mut this.broken);
        this.exchange = None;
        Poll::Ready(broken.then(|| Err(io::Error::other("the connection was closed"))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.end.is_none() && !self.broken && self.length.is_some()
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
