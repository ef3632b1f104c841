//! What a site is to answer, and the site that is served on loopback.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::answer::{Answer, Script};
use super::log::Log;
use super::pages::Pages;
use super::serve::serve;
use super::service::SiteService;
use super::tls::Authority;

/// A site that is being served. Dropping it closes its listener and its connections.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    https: bool,
    log: Log,
    serving: JoinHandle<()>,
}

/// What a site is to answer, before it is served.
#[derive(Debug)]
#[must_use]
pub struct Builder {
    listen: IpAddr,
    scripts: HashMap<String, Script>,
    otherwise: Script,
    authority: Option<Arc<Authority>>,
}

impl Site {
    /// A site without pages: everything, robots.txt included, is answered 404.
    pub fn builder() -> Builder {
        Builder {
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            scripts: HashMap::new(),
            otherwise: Answer::not_found().into(),
            authority: None,
        }
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The URL of `path`, which starts with a slash, at the address that the site listens on.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    /// The URL of `path` under the name `host`, with the site's port. The client has to be told where that name leads.
    #[must_use]
    pub fn url_as(&self, host: &str, path: &str) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{host}:{}{path}", self.port())
    }

    /// What the site has seen so far.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Builder {
    /// Listens on `address`, with a port of the system's choice. The default is 127.0.0.1.
    pub fn listen(mut self, address: IpAddr) -> Self {
        self.listen = address;
        self
    }

    /// Answers requests for `path` (without a query) by `script`: one [`Answer`], a list of them, or a [`Script`].
    pub fn at(mut self, path: &str, script: impl Into<Script>) -> Self {
        self.scripts.insert(path.to_owned(), script.into());
        self
    }

    /// Serves `text` as `/robots.txt`, with an ETag.
    pub fn robots(self, text: &str) -> Self {
        self.at("/robots.txt", Answer::text(text).etag("\"robots\""))
    }

    /// Answers everything else by `script`. The default is 404.
    pub fn otherwise(mut self, script: impl Into<Script>) -> Self {
        self.otherwise = script.into();
        self
    }

    /// Speaks TLS, with a certificate from `authority` for the names that it covers.
    pub fn https(mut self, authority: &Arc<Authority>) -> Self {
        self.authority = Some(Arc::clone(authority));
        self
    }

    /// The site as a service without sockets, for whatever host is asked. It has neither address nor TLS.
    #[must_use]
    pub fn in_process(self) -> SiteService {
        SiteService::new(self.pages())
    }

    fn pages(self) -> Pages {
        Pages {
            scripts: self.scripts,
            otherwise: self.otherwise,
            log: Log::new(),
        }
    }

    /// Starts to listen and to answer. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn start(self) -> io::Result<Site> {
        let listener = TcpListener::bind((self.listen, 0)).await?;
        let address = listener.local_addr()?;
        let tls = self.authority.as_deref().map(Authority::acceptor);
        let https = tls.is_some();
        let pages = self.pages();
        let log = pages.log.clone();
        let serving = tokio::spawn(serve(listener, tls, Arc::new(pages)));
        Ok(Site {
            address,
            https,
            log,
            serving,
        })
    }
}
