//! Connections in, requests through the stack.

use std::sync::Mutex;
use std::time::Duration;

use http::Uri;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tower_etiquette::BoxError;

use super::forward::answer;
use super::stack::Stack;

/// Serves what `listener` accepts from `stack`, whose innermost service asks `upstream`, until the future is dropped.
///
/// Each connection stays with one of so many `workers`, threads with an event loop of their own: an answer from the
/// store then wakes nobody else.
///
/// # Errors
/// When a worker cannot be started.
pub async fn serve_around(
    listener: TcpListener,
    upstream: &Uri,
    stack: &Stack,
    workers: usize,
) -> Result<(), BoxError> {
    let workers = (0..workers.max(1)).map(|number| worker(number, upstream, stack));
    let workers = workers.collect::<Result<Vec<_>, _>>()?;
    for worker in workers.iter().cycle() {
        let socket = loop {
            match listener.accept().await {
                Ok((socket, _)) => break socket,
                // Out of file handles, mostly: others will be closed meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let _ = socket.set_nodelay(true);
        // The workers end after this future only.
        let _ = worker.send(socket.into_std()?);
    }
    Ok(())
}

/// Starts a worker, which ends when its sender is dropped, and its connections with it.
fn worker(
    number: usize,
    upstream: &Uri,
    stack: &Stack,
) -> std::io::Result<UnboundedSender<std::net::TcpStream>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (upstream, stack) = (upstream.clone(), stack.clone());
    let (sender, mut accepted) = unbounded_channel();
    let work = async move {
        while let Some(socket) = accepted.recv().await {
            // A caller who is gone already is no event of the gateway.
            if let Ok(socket) = TcpStream::from_std(socket) {
                tokio::spawn(connection(socket, upstream.clone(), stack.clone()));
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("gateway-{number}"))
        .spawn(move || runtime.block_on(work))?;
    Ok(sender)
}

async fn connection(socket: TcpStream, upstream: Uri, stack: Stack) {
    let stack = Mutex::new(stack);
    let service = service_fn(move |request| answer(&stack, &upstream, request));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(socket), service);
    // A caller who goes away is no event of the gateway.
    let _ = served.await;
}
