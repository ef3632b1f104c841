//! A Redis or Valkey of one's own, on a free port of this machine, gone with the test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    folder: PathBuf,
    more: Vec<String>,
    process: Option<Child>,
    /// The address of a server that was there before, and stays.
    given: Option<String>,
    namespace: String,
}

/// The binary, unless there is none: the one that `ETIQUETTE_REDIS_SERVER` names, else the first that is installed.
fn binary() -> Option<String> {
    let names = match std::env::var("ETIQUETTE_REDIS_SERVER") {
        Ok(name) => vec![name],
        Err(_) => vec!["redis-server".to_owned(), "valkey-server".to_owned()],
    };
    names.into_iter().find(|name| {
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
        Self::start_with(|_, _| more.iter().map(|&word| word.to_owned()).collect())
    }

    /// The server that `REDIS_URL` names, for tests that leave everything but their own keys alone; else one of its own.
    pub(crate) fn given_or_started() -> Option<Self> {
        let Ok(url) = std::env::var("REDIS_URL") else {
            return Self::start(&[]);
        };
        Some(Self {
            port: 0,
            folder: PathBuf::new(),
            more: Vec::new(),
            process: None,
            given: Some(url),
            namespace: Self::new_name(),
        })
    }

    /// The same with options that depend on its port and its folder. Where the binary does not know one of them, which is
    /// so with a build without TLS, that is said and there is none.
    pub(crate) fn start_with(more: impl FnOnce(u16, &Path) -> Vec<String>) -> Option<Self> {
        if binary().is_none() {
            println!("skipped: neither redis-server nor valkey-server is installed");
            return None;
        }
        let namespace = Self::new_name();
        let folder = std::env::temp_dir().join(&namespace);
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let port = free_port();
        let mut server = Self {
            port,
            more: more(port, &folder),
            folder,
            process: None,
            given: None,
            namespace,
        };
        if let Some(unknown) = server.unknown_option() {
            println!("skipped: {unknown}");
            return None;
        }
        server.launch();
        Some(server)
    }

    fn new_name() -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("etiquette-test-{}-{number}", std::process::id())
    }

    /// What the binary says of options that it does not know. It is asked with a port that nobody may listen on.
    fn unknown_option(&self) -> Option<String> {
        if !self.more.iter().any(|word| word == "--tls-port") {
            return None;
        }
        let output = Command::new(binary()?)
            .args(["--port", "0", "--tls-port", "0"])
            .output()
            .ok()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        said.contains("Bad directive")
            .then(|| "this server was built without TLS".to_owned())
    }

    /// Starts the process again, with an empty memory.
    pub(crate) fn launch(&mut self) {
        let binary = binary().expect("it was there a moment ago");
        for _ in 0..5 {
            let mut process = Command::new(&binary)
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
        let own = || format!("redis://127.0.0.1:{}/", self.port);
        self.given.clone().unwrap_or_else(own)
    }

    /// What the keys of this test begin with, where the server is not its own.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// All keys that begin like this.
    pub(crate) fn keys(&self, namespace: &str) -> Vec<String> {
        redis::cmd("KEYS")
            .arg(format!("{namespace}:*"))
            .query(&mut self.connection())
            .expect("the server runs")
    }

    /// Lets a new server remember an hour in the namespace `etiquette`, so that nothing waits for permits that it might have
    /// forgotten.
    pub(crate) fn has_been_in_use(&self) {
        let mut behind = self.connection();
        let info: String = redis::cmd("INFO")
            .arg("server")
            .query(&mut behind)
            .expect("the server runs");
        let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
        let (now, _): (i64, i64) = redis::cmd("TIME")
            .query(&mut behind)
            .expect("the server runs");
        for bucket in 0..64 {
            let since = (now - 3_600) * 1_000_000;
            let _: () = redis::cmd("HSET")
                .arg(format!("etiquette:1:{{{bucket}}}:mark"))
                .arg("since")
                .arg(since)
                .arg("run")
                .arg(run.expect("it has one").trim())
                .query(&mut behind)
                .expect("the server runs");
        }
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
        if self.given.is_some() {
            let left = self.keys(&self.namespace);
            if !left.is_empty() {
                let _: () = redis::cmd("UNLINK")
                    .arg(left)
                    .query(&mut self.connection())
                    .expect("the server runs");
            }
        } else {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
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
