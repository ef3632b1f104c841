//! Stored responses: our gateway against nginx's proxy_cache, interleaved in one run.
//!
//! nginx and wrk are taken from PATH; what is not there is skipped with a line. Each round asks all peers in turn, and
//! the median of the rounds counts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

const ROUNDS: usize = 3;
const SECONDS: u32 = 4;
const LARGE: usize = 100 << 20;

/// A peer that listens in front of the origin.
struct Peer {
    name: &'static str,
    address: SocketAddr,
    processes: Vec<u32>,
    child: Child,
    folder: Option<PathBuf>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // nginx ends its workers when its master is told to quit; a killed master leaves them.
        for process in self.processes.iter().rev() {
            let _ = Command::new("kill").arg(process.to_string()).status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

pub(crate) fn run(as_json: bool) -> ExitCode {
    let origin = match Origin::start() {
        Ok(origin) => origin,
        Err(error) => return failed("the origin", &error),
    };
    let mut peers = Vec::new();
    match ours(origin.address) {
        Ok(peer) => peers.push(peer),
        Err(error) => return failed("our gateway", &error),
    }
    match nginx(origin.address) {
        Ok(Some(peer)) => peers.push(peer),
        Ok(None) => eprintln!("skipped: nginx is not on PATH"),
        Err(error) => eprintln!("skipped: nginx does not start: {error}"),
    }
    let mut rows = Vec::new();
    if on_path("wrk").is_some() {
        for (case, size) in [("hit-2k", 2 << 10), ("hit-1m", 1 << 20)] {
            for (name, rate) in hits(&peers, size) {
                rows.push(json!({"case": case, "peer": name, "requests_per_second": rate}));
            }
        }
    } else {
        eprintln!("skipped: wrk is not on PATH, so hits are not measured");
    }
    for peer in &peers {
        let asked = collapse(peer, &origin);
        rows.push(json!({"case": "collapse-100", "peer": peer.name, "origin_requests": asked}));
        match large(peer) {
            Ok((first, grown)) => rows.push(json!({
                "case": "miss-100m",
                "peer": peer.name,
                "first_byte_ms": first.as_secs_f64() * 1e3,
                "memory_growth_mb": grown,
            })),
            Err(error) => return failed(peer.name, &error),
        }
    }
    for row in &rows {
        if as_json {
            println!("{row}");
        } else {
            let values = row.as_object().into_iter().flatten();
            let cells: Vec<String> = values
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            println!("{}", cells.join("  "));
        }
    }
    ExitCode::SUCCESS
}

fn failed(what: &str, error: &std::io::Error) -> ExitCode {
    eprintln!("{what}: {error}");
    ExitCode::FAILURE
}

/// The process of our gateway: `compare cache gateway LISTEN UPSTREAM`.
pub(crate) fn gateway(listen: &str, upstream: &str) -> ExitCode {
    use clap::Parser;
    let options = etiquette_examples::gateway::Options::parse_from([
        "gateway",
        "--listen",
        listen,
        "--upstream",
        upstream,
        "--layers",
        "cache",
        "--shared-cache",
    ]);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let ended = runtime.map(|runtime| {
        runtime.block_on(etiquette_examples::gateway::run(
            options,
            &mut std::io::stdout(),
        ))
    });
    match ended {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        Err(error) => failed("the runtime", &error),
    }
}

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn ours(origin: SocketAddr) -> std::io::Result<Peer> {
    let address = free_address()?;
    let child = Command::new(std::env::current_exe()?)
        .args([
            "cache",
            "gateway",
            &address.to_string(),
            &format!("http://{origin}"),
        ])
        .stdout(Stdio::null())
        .spawn()?;
    wait_for(address)?;
    Ok(Peer {
        name: "tower-etiquette",
        address,
        processes: vec![child.id()],
        child,
        folder: None,
    })
}

fn nginx(origin: SocketAddr) -> std::io::Result<Option<Peer>> {
    let Some(program) = on_path("nginx") else {
        return Ok(None);
    };
    let address = free_address()?;
    let folder = std::env::temp_dir().join(format!("compare-nginx-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let at = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {at}/{kind};\n"))
        .concat();
    let settings = format!(
        "daemon off; worker_processes 2; error_log {at}/error.log; pid {at}/pid;
events {{ worker_connections 1024; }}
http {{
access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;
{temporary}proxy_cache_path {at}/cache keys_zone=zone:10m max_size=1g;
server {{ listen {address}; location / {{
proxy_pass http://{origin}; proxy_cache zone; proxy_cache_lock on; proxy_http_version 1.1;
proxy_set_header Connection \"\"; }} }} }}"
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, settings)?;
    let child = Command::new(program)
        .arg("-c")
        .arg(&file)
        .arg("-p")
        .arg(&folder)
        .stderr(Stdio::null())
        .spawn()?;
    wait_for(address)?;
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let workers = std::fs::read_to_string(children).unwrap_or_default();
    let workers = workers.split_whitespace().filter_map(|id| id.parse().ok());
    Ok(Some(Peer {
        name: "nginx",
        address,
        processes: workers.chain([child.id()]).collect(),
        child,
        folder: Some(folder),
    }))
}

fn wait_for(address: SocketAddr) -> std::io::Result<()> {
    let start = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(_) => return Ok(()),
            Err(error) if start.elapsed() > Duration::from_secs(5) => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Requests a second that each peer answers from its store: the median of the rounds.
fn hits(peers: &[Peer], size: usize) -> Vec<(&'static str, f64)> {
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); peers.len()];
    for peer in peers {
        let _ = get(peer.address, &format!("/{size}?warm"));
    }
    for _ in 0..ROUNDS {
        for (peer, rates) in peers.iter().zip(&mut rates) {
            let url = format!("http://{}/{size}?warm", peer.address);
            let done = Command::new("wrk")
                .args(["-t1", "-c16", &format!("-d{SECONDS}s"), &url])
                .output();
            let text = done.map(|done| String::from_utf8_lossy(&done.stdout).into_owned());
            let rate = text
                .unwrap_or_default()
                .lines()
                .find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
            rates.push(rate.unwrap_or(0.0));
        }
    }
    let middle = |mut rates: Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    peers
        .iter()
        .map(|peer| peer.name)
        .zip(rates.into_iter().map(middle))
        .collect()
}

/// How often the origin is asked when a hundred callers miss at once.
fn collapse(peer: &Peer, origin: &Origin) -> usize {
    let before = origin.asked.load(Ordering::SeqCst);
    let address = peer.address;
    let path = format!("/2048?slow={}", peer.name);
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || get(address, &path).map(|(_, octets)| octets))
        })
        .collect();
    for caller in callers {
        match caller.join() {
            Ok(Ok(2_048)) => {}
            other => eprintln!("{}: a caller got {other:?}", peer.name),
        }
    }
    origin.asked.load(Ordering::SeqCst) - before
}

/// Time to the first octet of a large body that is not stored yet, and how much the peak memory grew, in MB.
fn large(peer: &Peer) -> std::io::Result<(Duration, f64)> {
    let peak = || -> u64 { peer.processes.iter().map(|id| peak_memory(*id)).sum() };
    let before = peak();
    let (first, octets) = get(peer.address, &format!("/{LARGE}?large"))?;
    if octets != LARGE {
        return Err(std::io::Error::other(format!("{octets} octets of {LARGE}")));
    }
    Ok((first, peak().saturating_sub(before) as f64 / 1024.0))
}

/// The peak resident memory of a process, in KiB.
fn peak_memory(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

/// One GET on a connection of its own: the time to the first octet of the body, and its length.
fn get(address: SocketAddr, path: &str) -> std::io::Result<(Duration, usize)> {
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
    let mut octets = reader.fill_buf()?.len();
    let first = start.elapsed();
    reader.consume(octets);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok((first, octets)),
            more => octets += more,
        }
    }
}

/// A site that answers `/N` with N octets, after 300 ms where the query says `slow`.
struct Origin {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Origin {
    fn start() -> std::io::Result<Self> {
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
