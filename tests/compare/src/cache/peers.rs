//! The processes that are compared. All listen on loopback, in front of one origin.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use etiquette_examples::gateway::{Args, client, run, serve_around};
use tower_etiquette::{BoxError, BoxedService};
use tower_layer::Layer;

use super::failed;

pub(super) const OURS: &str = "tower-etiquette";

/// Each peer has so many threads or processes that answer.
const WORKERS: usize = 2;

/// A peer that listens in front of the origin.
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    processes: Vec<u32>,
    child: Child,
    folder: Option<PathBuf>,
}

impl Peer {
    /// Its resident memory in KiB. The peak begins anew.
    pub(super) fn memory_now(&self) -> u64 {
        for id in &self.processes {
            // nginx's loader of old entries ends when it is done.
            if !Path::new(&format!("/proc/{id}")).exists() {
                continue;
            }
            // 5 is "reset the peak", proc(5). Where that is refused, the peak is an earlier one and growth looks smaller.
            if let Err(error) = std::fs::write(format!("/proc/{id}/clear_refs"), "5") {
                eprintln!("{}: the peak of memory is an older one: {error}", self.name);
            }
        }
        self.memory("VmRSS:")
    }

    /// The peak of its resident memory since [`Peer::memory_now`], in KiB.
    pub(super) fn peak_memory(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, line: &str) -> u64 {
        let of = |id| -> Option<u64> {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
            let line = status.lines().find_map(|text| text.strip_prefix(line))?;
            line.split_whitespace().next()?.parse().ok()
        };
        self.processes.iter().filter_map(of).sum()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // nginx ends its workers when its master is told to quit; a killed master leaves them.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        for _ in 0..100 {
            if let Ok(Some(_)) = self.child.try_wait() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The process of a gateway of tower services: `compare cache gateway PEER LISTEN UPSTREAM`.
pub(crate) fn gateway(peer: &str, listen: &str, upstream: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return failed("the runtime", &error),
    };
    let ended = if peer == OURS {
        runtime.block_on(ours(listen, upstream))
    } else {
        runtime.block_on(http_cache_tower(listen, upstream))
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The example, as a user runs it.
async fn ours(listen: &str, upstream: &str) -> Result<(), BoxError> {
    use clap::Parser;
    let options = Args::parse_from([
        "gateway",
        "--listen",
        listen,
        "--upstream",
        upstream,
        "--layers",
        "cache",
        "--shared-cache",
        "--workers",
        &WORKERS.to_string(),
    ]);
    run(options, &mut std::io::stdout()).await
}

/// The same gateway around the peer's cache, in memory and with its defaults.
async fn http_cache_tower(listen: &str, upstream: &str) -> Result<(), BoxError> {
    let cache = http_cache_tower::HttpCacheLayer::new(http_cache::MokaManager::default());
    let stack = BoxedService::new(cache.layer(client()));
    let listener = tokio::net::TcpListener::bind(listen).await?;
    serve_around(listener, &upstream.parse()?, &stack, WORKERS).await
}

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Starts this program again as the gateway `name`.
pub(super) fn tower(name: &'static str, origin: SocketAddr) -> std::io::Result<Peer> {
    let address = free_address()?;
    let child = Command::new(std::env::current_exe()?)
        .args([
            "cache",
            "gateway",
            name,
            &address.to_string(),
            &format!("http://{origin}"),
        ])
        .stdout(Stdio::null())
        .spawn()?;
    let peer = Peer {
        name,
        address,
        processes: vec![child.id()],
        child,
        folder: None,
    };
    wait_for(address)?;
    Ok(peer)
}

pub(super) fn nginx(origin: SocketAddr) -> std::io::Result<Option<Peer>> {
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
        "daemon off; worker_processes {WORKERS}; error_log {at}/error.log; pid {at}/pid;
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
    let master = child.id();
    let mut peer = Peer {
        name: "nginx",
        address,
        processes: vec![master],
        child,
        folder: Some(folder),
    };
    wait_for(address)?;
    let children = format!("/proc/{master}/task/{master}/children");
    let workers = std::fs::read_to_string(children)?;
    let workers = workers.split_whitespace().filter_map(|id| id.parse().ok());
    peer.processes.splice(0..0, workers);
    Ok(Some(peer))
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
