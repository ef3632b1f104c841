//! Serving: connections in, scripted answers out, everything into the log.

use std::io;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::answer::Arrival;
use super::body::{Exchange, SiteBody, respond};
use super::log::Log;
use super::pages::Pages;

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
) -> Result<Response<SiteBody>, io::Error> {
    let mut arrival = Arrival::of(&request);
    let log = pages.log.clone();
    let index = log.arrived(connection, request.version(), &mut arrival);
    let exchange = Exchange { log, index };
    respond(pages.answer(&arrival), exchange).await
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
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::super::{Answer, Site};

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
        let text = ask(
            &site,
            "GET /a?b HTTP/1.1\r\nhost: x\r\nuser-agent: Y\r\nconnection: close\r\n\r\n",
        )
        .await;
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        assert!(text.ends_with("1234"), "{text}");
        site.log().next_run();
        let text = ask(
            &site,
            "GET /robots.txt HTTP/1.1\r\nif-none-match: \"robots\"\r\nconnection: close\r\n\r\n",
        )
        .await;
        assert!(text.starts_with("HTTP/1.1 304"), "{text}");
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
