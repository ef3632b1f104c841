//! Both ends of a connection on loopback: a caller that counts bytes, and the origin.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// One GET on a connection of its own: the time to the first byte of the body, and its length.
pub(super) fn get(address: SocketAddr, path: &str) -> std::io::Result<(Duration, usize)> {
    let start = Instant::now();
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nHost: site.example\r\nConnection: close\r\n\r\n"
    )?;
    let mut reader = BufReader::with_capacity(1 << 16, socket);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut bytes = reader.fill_buf()?.len();
    let first = start.elapsed();
    reader.consume(bytes);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok((first, bytes)),
            more => bytes += more,
        }
    }
}

/// A site that answers `/N` with N bytes, after 300 ms where the query says `slow`.
pub(super) struct Origin {
    pub(super) address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Origin {
    pub(super) fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let asked: Arc<AtomicUsize> = Arc::default();
        let counter = Arc::clone(&asked);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let counter = Arc::clone(&counter);
                // A connection that breaks off is the peer's.
                std::thread::spawn(move || drop(answer(&socket, &counter)));
            }
        });
        Ok(Self { address, asked })
    }

    /// How many requests have come.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn answer(socket: &TcpStream, asked: &AtomicUsize) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket);
    let mut out = socket;
    let chunk = vec![b'x'; 1 << 16];
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        asked.fetch_add(1, Ordering::SeqCst);
        if request.contains("slow") {
            std::thread::sleep(Duration::from_millis(300));
        }
        let target = Path::new(request.split(' ').nth(1).unwrap_or_default());
        let name = target
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let mut left: usize = name
            .split('?')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Length: {left}\r\nContent-Type: text/plain\r\n\
             Cache-Control: max-age=3600\r\n\r\n"
        )?;
        while left > 0 {
            let part = left.min(chunk.len());
            out.write_all(&chunk[..part])?;
            left -= part;
        }
    }
}
