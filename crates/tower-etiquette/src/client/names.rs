//! Where each name leads: looked up once, kept for a while, and the same for the budget and for the connection.
//!
//! A name is held to one of its addresses, so that the address in whose budget a request waited is the one that it is
//! sent to. A look-up is repeated after five minutes; the address stays as long as the name still leads there. A
//! connection that fails moves the name on to its next address.

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use etiquette_core::decide::address::{self, AddressRefused};
use etiquette_core::{Origin, Refusal};
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tokio::time::Instant;
use tower_service::Service;

use super::error::ConnectError;
use crate::BoxError;
use crate::hosts::{AddressResolver, ResolvedAddress};
use crate::lock::lock;
use crate::macros::opaque_debug;

/// How long a look-up counts.
const FRESH: Duration = Duration::from_secs(300);
/// How long a failed one does.
const FAILED: Duration = Duration::from_secs(5);
/// A name that was not asked for since is forgotten: longer than the pool keeps a connection.
const FORGOTTEN: Duration = Duration::from_secs(120);
/// With fewer names nothing is forgotten.
const FEW: usize = 1_024;

pub(super) type LookedUp = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, BoxError>> + Send>>;

/// How names are looked up.
#[derive(Clone)]
pub(super) struct Lookup {
    resolve: Arc<dyn Fn(String) -> LookedUp + Send + Sync>,
    pub(super) public_only: bool,
}

impl Lookup {
    pub(super) fn new(resolve: Option<Resolve>, public_only: bool) -> Self {
        let Resolve(resolve) = resolve.unwrap_or_else(Resolve::by_the_system);
        Self {
            resolve,
            public_only,
        }
    }

    /// The addresses of a name that may be connected to.
    pub(super) async fn look_up(&self, name: String) -> Result<Vec<IpAddr>, BoxError> {
        let addresses = (self.resolve)(name).await?;
        // A name with a private address among its public ones is not trusted with the public ones either.
        for address in &addresses {
            self.admit(*address)?;
        }
        if addresses.is_empty() {
            return Err(ConnectError::NoAddress.into());
        }
        Ok(addresses)
    }

    /// Whether an address may be connected to.
    pub(super) fn admit(&self, address: IpAddr) -> Result<(), ConnectError> {
        if self.public_only && !address::is_public(address) {
            return Err(ConnectError::NotPublic(address));
        }
        Ok(())
    }
}

/// What looks a name up.
#[derive(Clone)]
pub(super) struct Resolve(pub(super) Arc<dyn Fn(String) -> LookedUp + Send + Sync>);

impl Resolve {
    fn by_the_system() -> Self {
        Self(Arc::new(|name| {
            Box::pin(async move {
                let name: Name = name.parse()?;
                let mut system = GaiResolver::new();
                std::future::poll_fn(|task| system.poll_ready(task)).await?;
                let found = system.call(name).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        }))
    }
}

opaque_debug!(Resolve);

/// The addresses that names are held to.
#[derive(Clone)]
pub(super) struct HeldNames(Arc<Inner>);

struct Inner {
    lookup: Lookup,
    /// Host and port to the address that is connected to in their place.
    set: Arc<HashMap<(String, u16), IpAddr>>,
    timeout: Duration,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    held: HashMap<String, Held>,
    sweep_at: usize,
}

struct Held {
    /// What the name leads to; the first is the one that it is held to.
    addresses: Result<Vec<IpAddr>, ConnectError>,
    looked_up: Instant,
    used: Instant,
}

impl HeldNames {
    pub(super) fn new(
        lookup: Lookup,
        set: Arc<HashMap<(String, u16), IpAddr>>,
        timeout: Duration,
    ) -> Self {
        Self(Arc::new(Inner {
            lookup,
            set,
            timeout,
            names: Mutex::default(),
        }))
    }

    /// The address that a name is held to.
    pub(super) async fn of_name(&self, name: &str) -> Result<IpAddr, ConnectError> {
        if let Some(known) = self.known(name) {
            return known;
        }
        let lookup = self.0.lookup.look_up(name.to_owned());
        let found = match tokio::time::timeout(self.0.timeout, lookup).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(ConnectError::of_lookup(&error)),
            Err(_) => Err(ConnectError::LookupTimedOut),
        };
        self.hold(name, found)
    }

    /// What is known of a name, if that still counts.
    fn known(&self, name: &str) -> Option<Result<IpAddr, ConnectError>> {
        let now = Instant::now();
        let mut names = self.names();
        let held = names.held.get_mut(name)?;
        let since = now - held.looked_up;
        let counts = match held.addresses {
            Ok(_) => since < FRESH && now - held.used < FORGOTTEN,
            Err(_) => since < FAILED,
        };
        counts.then(|| {
            held.used = now;
            held.address()
        })
    }

    /// Takes note of a look-up; what the name leads to from now on.
    fn hold(
        &self,
        name: &str,
        found: Result<Vec<IpAddr>, ConnectError>,
    ) -> Result<IpAddr, ConnectError> {
        let now = Instant::now();
        let mut names = self.names();
        names.sweep(now);
        let held = names.held.entry(name.to_owned()).or_insert(Held {
            addresses: Err(ConnectError::NoAddress),
            looked_up: now,
            used: now,
        });
        let before = held.address().ok().filter(|_| now - held.used < FORGOTTEN);
        match (found, before) {
            (Ok(mut addresses), before) => {
                // It stays where it is, because connections are there.
                if let Some(at) = addresses.iter().position(|one| Some(*one) == before) {
                    addresses.swap(0, at);
                }
                held.addresses = Ok(addresses);
            }
            // Where there are connections a failed look-up changes nothing; the next request looks again.
            (Err(_), Some(address)) => {
                held.used = now;
                return Ok(address);
            }
            (Err(error), None) => held.addresses = Err(error),
        }
        held.looked_up = now;
        held.used = now;
        held.address()
    }

    /// Nobody could be connected to there: the name moves on to its next address, and is looked up anew when there is
    /// none.
    pub(super) fn failed(&self, name: &str) {
        let mut names = self.names();
        let Some(held) = names.held.get_mut(name) else {
            return;
        };
        match &mut held.addresses {
            Ok(addresses) if addresses.len() > 1 => {
                addresses.remove(0);
            }
            _ => {
                names.held.remove(name);
            }
        }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.0.names)
    }
}

impl Names {
    fn sweep(&mut self, now: Instant) {
        if self.held.len() >= self.sweep_at.max(FEW) {
            self.held.retain(|_, held| now - held.used < FORGOTTEN);
            self.sweep_at = self.held.len().saturating_mul(2);
        }
    }
}

impl Held {
    fn address(&self) -> Result<IpAddr, ConnectError> {
        match &self.addresses {
            Ok(addresses) => addresses.first().copied().ok_or(ConnectError::NoAddress),
            Err(error) => Err(error.clone()),
        }
    }
}

impl AddressResolver for HeldNames {
    fn resolve(&self, origin: &Origin, contact: Option<Arc<str>>) -> ResolvedAddress {
        let host = origin.host();
        let literal = host.trim_matches(['[', ']']).parse().ok();
        let set = self.0.set.get(&(host.to_owned(), origin.port())).copied();
        if let Some(address) = set.or(literal) {
            return Box::pin(std::future::ready(Ok(address)));
        }
        let (names, origin) = (self.clone(), origin.clone());
        Box::pin(async move {
            names
                .of_name(origin.host())
                .await
                .map_err(|error| match error {
                    ConnectError::NotPublic(address) => {
                        let leaf = AddressRefused::new(Some(origin), address, contact);
                        Refusal::from(leaf).into()
                    }
                    other => other.into(),
                })
        })
    }
}

opaque_debug!(HeldNames);

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Answers with what is set, and counts how often it was asked.
    #[derive(Clone, Default)]
    struct Book(Arc<Mutex<(Vec<&'static str>, u32)>>);

    impl Book {
        fn says(&self, addresses: &[&'static str]) {
            self.0.lock().unwrap().0 = addresses.to_vec();
        }

        fn asked(&self) -> u32 {
            self.0.lock().unwrap().1
        }

        fn addresses(&self, public_only: bool) -> HeldNames {
            let book = self.clone();
            let resolve = Resolve(Arc::new(move |_| {
                let mut book = book.0.lock().unwrap();
                book.1 += 1;
                let addresses: Vec<IpAddr> =
                    book.0.iter().map(|one| one.parse().unwrap()).collect();
                Box::pin(std::future::ready(Ok(addresses)))
            }));
            let set = HashMap::from([((String::from("set.example"), 80), at("192.0.2.80"))]);
            let lookup = Lookup::new(Some(resolve), public_only);
            HeldNames::new(lookup, Arc::new(set), Duration::from_secs(10))
        }
    }

    fn at(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_stays_at_one_address_while_it_leads_there() {
        let book = Book::default();
        let addresses = book.addresses(false);
        book.says(&["192.0.2.1", "192.0.2.2"]);
        assert_eq!(addresses.of_name("a.example").await, Ok(at("192.0.2.1")));
        // A round robin turns; the name does not move.
        book.says(&["192.0.2.2", "192.0.2.1"]);
        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(60)).await;
            assert_eq!(addresses.of_name("a.example").await, Ok(at("192.0.2.1")));
        }
        assert_eq!(book.asked(), 2, "once more after five minutes");
        book.says(&["192.0.2.9"]);
        for _ in 0..5 {
            tokio::time::advance(Duration::from_secs(60)).await;
            let _ = addresses.of_name("a.example").await;
        }
        assert_eq!(addresses.of_name("a.example").await, Ok(at("192.0.2.9")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_fails_moves_the_name_on() {
        let book = Book::default();
        let addresses = book.addresses(false);
        book.says(&["192.0.2.1", "192.0.2.2"]);
        assert_eq!(addresses.of_name("a.example").await, Ok(at("192.0.2.1")));
        addresses.failed("a.example");
        assert_eq!(addresses.of_name("a.example").await, Ok(at("192.0.2.2")));
        assert_eq!(book.asked(), 1);
        addresses.failed("a.example");
        assert_eq!(addresses.of_name("a.example").await, Ok(at("192.0.2.1")));
        assert_eq!(book.asked(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_look_up_is_an_error_and_soon_forgotten() {
        let book = Book::default();
        let addresses = book.addresses(true);
        assert_eq!(
            addresses.of_name("a.example").await,
            Err(ConnectError::NoAddress)
        );
        book.says(&["1.1.1.1", "10.0.0.1"]);
        assert_eq!(
            addresses.of_name("a.example").await,
            Err(ConnectError::NoAddress)
        );
        assert_eq!(book.asked(), 1);
        tokio::time::advance(FAILED).await;
        let private = ConnectError::NotPublic(at("10.0.0.1"));
        assert_eq!(addresses.of_name("a.example").await, Err(private));
        tokio::time::advance(FAILED).await;
        book.says(&["1.1.1.1"]);
        assert_eq!(addresses.of_name("a.example").await, Ok(at("1.1.1.1")));
        // A later failure does not move a name that is in use.
        book.says(&[]);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(addresses.of_name("a.example").await, Ok(at("1.1.1.1")));
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(100)).await;
            assert_eq!(addresses.of_name("a.example").await, Ok(at("1.1.1.1")));
        }
        tokio::time::advance(FORGOTTEN).await;
        assert_eq!(
            addresses.of_name("a.example").await,
            Err(ConnectError::NoAddress)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn names_out_of_use_are_forgotten() {
        let book = Book::default();
        book.says(&["192.0.2.1"]);
        let addresses = book.addresses(false);
        for number in 0..5_000 {
            addresses
                .of_name(&format!("{number}.example"))
                .await
                .unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let held = addresses.names().held.len();
        assert!(held <= FEW + 1, "{held}");
    }

    #[tokio::test]
    async fn literal_and_set_addresses_are_not_looked_up() {
        let book = Book::default();
        let addresses = book.addresses(false);
        let locate = async |uri: &str| {
            let origin = Origin::of(&uri.parse().unwrap()).unwrap();
            addresses.resolve(&origin, None).await.unwrap()
        };
        assert_eq!(locate("http://set.example/").await, at("192.0.2.80"));
        assert_eq!(locate("http://192.0.2.7:8080/").await, at("192.0.2.7"));
        assert_eq!(locate("http://[2001:db8::1]/").await, at("2001:db8::1"));
        assert_eq!(book.asked(), 0);
    }
}
