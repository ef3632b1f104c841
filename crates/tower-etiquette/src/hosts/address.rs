//! A second budget next to a host's own: what hosts share that are one machine.
//!
//! A request that has its turn at its host waits for its turn at the address, too, before it starts at either. The host's
//! queue is held up meanwhile, because its head has not left. Pauses, backoff level, Crawl-delays and rules stay the host's.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use etiquette_core::Origin;
use http::{Extensions, Uri};

use super::acquire::Acquire;
use super::handle::Hosts;
use super::request::AcquireOptions;
use crate::BoxError;

pub(crate) type ResolvedAddress = Pin<Box<dyn Future<Output = Result<IpAddr, BoxError>> + Send>>;

/// Knows where a request will be sent.
pub(crate) trait AddressResolver: fmt::Debug + Send + Sync {
    /// The address at which an origin is asked now; the contact is for a refusal. Whoever connects uses the same one.
    ///
    /// # Cancel safety
    /// Dropping it asks nobody.
    fn resolve(&self, origin: &Origin, contact: Option<Arc<str>>) -> ResolvedAddress;
}

/// Budgets for addresses.
#[derive(Clone, Debug)]
pub(crate) struct AddressBudget {
    hosts: Hosts,
    resolver: Arc<dyn AddressResolver>,
}

impl AddressBudget {
    #[cfg(feature = "client")]
    pub(crate) fn new(hosts: Hosts, resolver: Arc<dyn AddressResolver>) -> Self {
        Self { hosts, resolver }
    }
}

/// A request's way to a permit of its address.
#[derive(Debug)]
pub(super) struct AddressAcquire<'a> {
    budget: &'a AddressBudget,
    extensions: &'a Extensions,
    options: AcquireOptions,
    at: Option<(IpAddr, Acquire)>,
}

impl<'a> AddressAcquire<'a> {
    pub(super) fn new(
        budget: &'a AddressBudget,
        extensions: &'a Extensions,
        options: &AcquireOptions,
    ) -> Self {
        let mut options = options.clone();
        // The limit of an API is its host's.
        options.api = None;
        Self {
            budget,
            extensions,
            options,
            at: None,
        }
    }

    /// Waits until a permit is reserved at the address of the host.
    ///
    /// # Errors
    /// When nobody knows the address, and when the request may not wait there.
    pub(super) async fn reserve(
        &mut self,
        host: &Acquire,
    ) -> Result<(IpAddr, &mut Acquire), BoxError> {
        let contact = host.contact().cloned();
        let address = self.budget.resolver.resolve(host.origin(), contact).await?;
        let acquire = match self.at.take() {
            Some((known, acquire)) if known == address => acquire,
            _ => {
                let (registry, name) = (&self.budget.hosts.0, origin_of(address)?);
                host.at_address(registry, &name, self.extensions, &self.options)?
            }
        };
        let (_, acquire) = self.at.insert((address, acquire));
        acquire.reserve().await?;
        Ok((address, acquire))
    }

    /// Gives back what is reserved and keeps the position in the queue.
    pub(super) fn release(&mut self) {
        if let Some((_, acquire)) = &mut self.at {
            acquire.release();
        }
    }
}

/// The name under which an address has its budget.
fn origin_of(address: IpAddr) -> Result<Origin, BoxError> {
    let uri: Uri = match address {
        IpAddr::V4(address) => format!("http://{address}/").parse()?,
        IpAddr::V6(address) => format!("http://[{address}]/").parse()?,
    };
    Ok(Origin::of(&uri)?)
}
