//! What the layers share about a request on its way in.
//!
//! The layers never import each other. They meet here, in [`Facts`](crate::Facts) and in the state of the hosts.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use etiquette_core::vocabulary::purpose::Api;
use etiquette_core::{Identity, Purpose, PurposeKind};
use http::{Extensions, Request};

use crate::start_check::StartCheck;
use crate::visit::Visit;

/// What the layers share about a request. One extension, so that it costs one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    /// Who is asking: the one source of the token that robots.txt is asked for.
    pub(crate) identity: Option<Identity>,
    /// What robots.txt says at the moment at which the request starts.
    pub(crate) start_check: Option<Arc<dyn StartCheck>>,
    /// The request fetches robots.txt: it goes before pages and is nobody's page.
    pub(crate) fetches_robots_txt: bool,
    /// The visit that this request belongs to.
    pub(crate) visit: Option<Visit>,
    /// The hosts whose budget holds a permit for this request already.
    pub(crate) held_by: HostsSet,
    /// The hosts that have counted its start already, without a permit.
    pub(crate) counted_by: HostsSet,
    /// The largest delay of the budgets that hold a permit for it.
    pub(crate) delay: Duration,
    /// A retry layer further out wants to know whether a budget on the same hosts is below it.
    pub(crate) handshake: Option<Arc<Handshake>>,
}

impl Context {
    /// The context of a request, made if there is none.
    pub(crate) fn of(extensions: &mut Extensions) -> &mut Self {
        extensions.get_or_insert_default()
    }

    /// Who is asking, if a layer further out has said so.
    pub(crate) fn identity_in(extensions: &Extensions) -> Option<&Identity> {
        extensions.get::<Self>()?.identity.as_ref()
    }

    /// Where the client can be reached, as its identity publishes it.
    pub(crate) fn contact(&self) -> Option<Arc<str>> {
        self.identity.as_ref().map(Identity::help).cloned()
    }
}

impl Visit {
    /// Makes `request` a part of this visit.
    pub fn attach<B>(&self, request: &mut Request<B>) {
        Context::of(request.extensions_mut()).visit = Some(self.clone());
    }
}

/// The address whose budget a request is in: whoever sends it sends it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtAddress(pub(crate) IpAddr);

/// A few `Hosts`, by their numbers. More than four are not distinguished; nobody stacks that many budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostsSet([u32; 4]);

impl HostsSet {
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0[0] == 0
    }

    pub(crate) fn insert(&mut self, id: u32) {
        if !self.contains(id) {
            let free = self.0.iter().position(|slot| *slot == 0);
            self.0[free.unwrap_or(self.0.len() - 1)] = id;
        }
    }
}

/// How a retry layer learns that a budget further in holds the same hosts: then only the budget queues.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) hosts: u32,
    pub(crate) budget_below: AtomicBool,
}

/// The purpose that holds for a request; absent is a crawl, and so is an API request without its key.
pub(crate) fn purpose<B>(request: &Request<B>) -> PurposeKind {
    Purpose::kind_of(request.extensions(), request.uri(), request.headers())
}

/// The API that a request names.
pub(crate) fn api<B>(request: &Request<B>) -> Option<Api> {
    match request.extensions().get() {
        Some(Purpose::Api(api)) => Some(api.clone()),
        _ => None,
    }
}
