//! A Redis or Valkey of one's own, on a free port of this machine, gone with the test.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    folder: PathBuf,
    more: Vec<String>,
    process: Option<Child>,
}

/// The binary, unless there is none.
fn binary() -> Option<&'static str> {
    ["redis-server", "valkey-server"].into_iter().find(|name| {
        let version = Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        version.is_ok_and(|status| status.success())
    })
}

impl Server {
    /// A server that keeps nothing on disk; `None`, said in one line, where no binary is installed.
    pub(crate) fn start(more: &[&str]) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if binary().is_none() {
            println!("skipped: neither redis-server nor valkey-server is installed");
            return None;
        }
        let name = format!(
            "etiquette-redis-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let mut server = Self {
            port: free_port(),
            folder,
            more: more.iter().map(|&word| word.to_owned()).collect(),
            process: None,
        };
        server.launch();
        Some(server)
    }

    /// Starts the process again, with an empty memory.
    pub(crate) fn launch(&mut self) {
        let binary = binary().expect("it was there a moment ago");
        for _ in 0..5 {
            let mut process = Command::new(binary)
                .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
                .args(["--save", "", "--appendonly", "no", "--dir"])
                .arg(&self.folder)
                .args(&self.more)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the binary runs");
            let deadline = Instant::now() + Duration::from_secs(10);
            while Instant::now() < deadline {
                if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                    self.process = Some(process);
                    return;
                }
                if process.try_wait().is_ok_and(|status| status.is_some()) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = process.kill();
            let _ = process.wait();
        }
        panic!("the server did not come up on port {}", self.port);
    }

    /// Ends the process at once.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Sends `STOP` or `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        if let Some(process) = &self.process {
            signal(process.id(), name);
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// A connection to look behind the store's back.
    pub(crate) fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url())
            .expect("a valid address")
            .get_connection()
            .expect("the server runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal("CONT");
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Sends a signal to a process that this test started.
pub(crate) fn signal(process: u32, name: &str) {
    let _ = Command::new("kill")
        .args([format!("-{name}"), process.to_string()])
        .status();
}

fn free_port() -> u16 {
    // A Cluster node also listens 10,000 ports higher.
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        if port < 50_000 {
            return port;
        }
    }
}
