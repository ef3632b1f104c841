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

    /// Waits until a permit is reserved at the address of a request's host. What was `held` for the request before keeps its
    /// position, unless the host has moved.
    ///
    /// # Errors
    /// When nobody knows the address, and when the request may not wait there.
    pub(super) async fn reserve(
        &self,
        host: &Acquire,
        held: Option<(IpAddr, Acquire)>,
        extensions: &Extensions,
        options: &AcquireOptions,
    ) -> Result<(IpAddr, Acquire), BoxError> {
        let contact = host.contact().cloned();
        let address = self.resolver.resolve(host.origin(), contact).await?;
        let mut acquire = match held {
            Some((known, acquire)) if known == address => acquire,
            _ => host.at_address(&self.hosts.0, &origin_of(address)?, extensions, options)?,
        };
        acquire.reserve().await?;
        Ok((address, acquire))
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
