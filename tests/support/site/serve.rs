//! Serving: connections in, scripted answers out, everything into the log.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsAcceptor;

use super::log::Index;
use super::{Answer, Arrival, Log, Script};

/// What is answered, and where it is noted.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) scripts: HashMap<String, Script>,
    pub(super) otherwise: Script,
    pub(super) log: Log,
}

/// Accepts connections until it is dropped, which closes them.
pub(super) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, pages: Arc<Pages>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                // Without it the kernel holds the second small write of an answer for 40 ms.
                let _ = stream.set_nodelay(true);
                let open = Open::new(&pages.log);
                let (tls, pages) = (tls.clone(), Arc::clone(&pages));
                connections.spawn(async move {
                    match tls {
                        None => converse(stream, open, pages).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                converse(stream, open, pages).await;
                            }
                        }
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse<I>(stream: I, open: Open, pages: Arc<Pages>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| answer(request, open.connection, Arc::clone(&pages)));
    let builder = auto::Builder::new(TokioExecutor::new());
    // An error here is a client that went away, or an answer that is a closed connection.
    let _ = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    request: Request<Incoming>,
    connection: u64,
    pages: Arc<Pages>,
) -> Result<Response<Told>, io::Error> {
    let arrival = Arrival {
        method: request.method().clone(),
        target: request
            .uri()
            .path_and_query()
            .map_or_else(|| "/".to_owned(), ToString::to_string),
        host: request
            .uri()
            .authority()
            .map(ToString::to_string)
            .or_else(|| {
                let host = request.headers().get(header::HOST)?;
                host.to_str().ok().map(str::to_owned)
            })
            .unwrap_or_default(),
        headers: request.headers().clone(),
    };
    let index = pages.log.arrived(connection, request.version(), &arrival);
    let exchange = Exchange {
        log: pages.log.clone(),
        index,
    };
    let path = request.uri().path();
    let script = pages.scripts.get(path).unwrap_or(&pages.otherwise);
    let told = script.play(&arrival);
    if !told.before_head.is_zero() {
        sleep(told.before_head).await;
    }
    if told.hang_up {
        return Err(io::Error::other("the site hangs up"));
    }
    Ok(respond(told, exchange))
}

fn respond(told: Answer, exchange: Exchange) -> Response<Told> {
    exchange
        .log
        .answered(exchange.index, told.status, &told.headers);
    let half = if told.before_body.is_zero() {
        told.body.len()
    } else {
        told.body.len() / 2
    };
    let mut first = told.body;
    let second = first.split_off(half);
    let body = Told {
        first,
        second,
        pause: told.before_body,
        sleep: None,
        exchange: Some(exchange),
    };
    let mut response = Response::new(body.done_if_empty());
    *response.status_mut() = told.status;
    *response.headers_mut() = told.headers;
    response
}

/// A body of which each byte is noted when the connection takes it.
struct Told {
    first: Bytes,
    second: Bytes,
    pause: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Dropped, and so ended in the log, with the last byte.
    exchange: Option<Exchange>,
}

impl Told {
    fn done_if_empty(mut self) -> Self {
        if self.first.is_empty() && self.second.is_empty() {
            self.exchange = None;
        }
        self
    }

    fn hand_over(&mut self, bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(exchange) = &self.exchange {
            exchange.log.sent(exchange.index, bytes.len());
        }
        if self.first.is_empty() && self.second.is_empty() {
            self.exchange = None;
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

impl Body for Told {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if !this.first.is_empty() {
            let bytes = std::mem::take(&mut this.first);
            return this.hand_over(bytes);
        }
        if this.second.is_empty() {
            return Poll::Ready(None);
        }
        let pause = this.pause;
        let sleep = this.sleep.get_or_insert_with(|| Box::pin(sleep(pause)));
        if sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let bytes = std::mem::take(&mut this.second);
        this.hand_over(bytes)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.first.len() + self.second.len()) as u64)
    }
}

/// A request that is being answered; its end is noted when it is dropped.
struct Exchange {
    log: Log,
    index: Index,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.log.ended(self.index);
    }
}

/// A connection that is open until this is dropped.
struct Open {
    log: Log,
    connection: u64,
}

impl Open {
    fn new(log: &Log) -> Self {
        Self {
            log: log.clone(),
            connection: log.opened(),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.log.closed();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::super::Site;
    use super::*;

    async fn ask(site: &Site, request: &str) -> String {
        let mut stream = TcpStream::connect(site.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn what_arrives_is_answered_and_noted() {
        let slow = Duration::from_millis(60);
        let site = Site::builder()
            .robots("User-agent: *\n")
            .at("/a", Answer::html("1234").after(slow).trickle(slow))
            .at("/gone", Answer::hang_up())
            .start()
            .await
            .unwrap();
        let told = ask(
            &site,
            "GET /a?b HTTP/1.1\r\nhost: x\r\nuser-agent: Y\r\nconnection: close\r\n\r\n",
        )
        .await;
        assert!(told.starts_with("HTTP/1.1 200 OK"), "{told}");
        assert!(told.ends_with("1234"), "{told}");
        site.log().next_run();
        let told = ask(
            &site,
            "GET /robots.txt HTTP/1.1\r\nif-none-match: \"robots\"\r\nconnection: close\r\n\r\n",
        )
        .await;
        assert!(told.starts_with("HTTP/1.1 304"), "{told}");
        assert_eq!(ask(&site, "GET /gone HTTP/1.1\r\n\r\n").await, "");

        let log = site.log().entries();
        assert_eq!(site.log().targets(), ["/a?b", "/robots.txt", "/gone"]);
        let [page, robots, gone] = &log[..] else {
            panic!("{log:?}")
        };
        assert_eq!((page.run, page.host.as_str()), (1, "x"));
        assert_eq!((page.path(), page.user_agent()), ("/a", "Y"));
        assert_eq!(page.bytes, 4);
        let (answered, ended) = (page.answered.unwrap(), page.ended.unwrap());
        assert!(answered >= page.at + slow && ended >= answered + slow);
        assert_eq!((robots.run, robots.is_conditional()), (2, true));
        assert!(robots.ended.is_some());
        assert_eq!(gone.status, None);
        assert!(gone.ended.is_some());
        assert_eq!(site.log().connections(), 3);
        assert_eq!(site.log().most_connections(), 1);
        assert_eq!(site.log().used_connections(), 3);
    }
}
