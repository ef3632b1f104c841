//! A second budget beside a host's own: what hosts share that are one machine.
//!
//! A request that has its turn at its host waits for its turn at the machine, too, before it starts at either. The host's
//! line is held up meanwhile, because its first is not gone. Pauses, backoff level, Crawl-delays and rules stay the host's.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use etiquette_core::Origin;
use http::{Extensions, Uri};

use super::Hosts;
use super::permit::Permit;
use super::ticket::{Manner, Ticket};
use crate::BoxError;

pub(crate) type Located = Pin<Box<dyn Future<Output = Result<IpAddr, BoxError>> + Send>>;

/// Knows where a request will be sent.
pub(crate) trait Locate: fmt::Debug + Send + Sync {
    /// The address at which an origin is asked now; the contact is for a refusal. Whoever connects uses the same one.
    ///
    /// # Cancel safety
    /// Dropping it asks nobody.
    fn locate(&self, origin: &Origin, contact: Option<Arc<str>>) -> Located;
}

/// Budgets for addresses.
#[derive(Clone, Debug)]
pub(crate) struct Second {
    hosts: Hosts,
    locate: Arc<dyn Locate>,
}

impl Second {
    #[cfg(feature = "client")]
    pub(crate) fn new(hosts: Hosts, locate: Arc<dyn Locate>) -> Self {
        Self { hosts, locate }
    }
}

/// A request's way through the line of its address.
#[derive(Debug)]
pub(super) struct Beside<'a> {
    second: &'a Second,
    extensions: &'a Extensions,
    manner: Manner,
    at: Option<(IpAddr, Ticket)>,
}

impl<'a> Beside<'a> {
    pub(super) fn new(second: &'a Second, extensions: &'a Extensions, mut manner: Manner) -> Self {
        // The limit of an API is its host's.
        manner.api = None;
        Self {
            second,
            extensions,
            manner,
            at: None,
        }
    }

    /// Waits until a permit is reserved at the address of the host.
    ///
    /// # Errors
    /// When nobody knows the address, and when the request may not wait there.
    pub(super) async fn turn(&mut self, host: &Ticket) -> Result<(), BoxError> {
        let contact = host.contact().cloned();
        let located = self.second.locate.locate(host.origin(), contact);
        let address = located.await?;
        if self.at.as_ref().is_none_or(|(known, _)| *known != address) {
            let name = origin_of(address)?;
            let hosts = &self.second.hosts;
            let ticket = host.beside(hosts, &name, self.extensions, &self.manner)?;
            self.at = Some((address, ticket));
        }
        if let Some((_, ticket)) = &mut self.at {
            ticket.turn().await?;
        }
        Ok(())
    }

    /// Whether the reserved permit may be used now. Otherwise, and where the host does not let the request start after
    /// all, it is given back; the position in the queue is kept.
    pub(super) fn is_due(&self) -> bool {
        self.at.as_ref().is_none_or(|(_, ticket)| ticket.is_due())
    }

    pub(super) fn give_back(&mut self) {
        if let Some((_, ticket)) = &mut self.at {
            ticket.give_back();
        }
    }

    /// Stamps the start; `None` when it may not start there after all.
    pub(super) fn start(&mut self) -> Result<Option<(IpAddr, Permit)>, BoxError> {
        match &mut self.at {
            Some((address, ticket)) => Ok(ticket.start()?.map(|permit| (*address, permit))),
            None => Ok(None),
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
