use etiquette_core::Origin;
use tower_layer::Layer;

use super::HostBudget;
use crate::Hosts;
use crate::hosts::AddressBudget;

/// Gives every host a budget; see the [module](crate::host_budget).
#[derive(Clone, Debug)]
pub struct HostBudgetLayer {
    hosts: Hosts,
    never_wait: bool,
    origin: Option<Origin>,
    address_budget: Option<AddressBudget>,
}

impl HostBudgetLayer {
    /// A budget for each of `hosts`, under their policy.
    #[must_use]
    pub fn new(hosts: Hosts) -> Self {
        Self {
            hosts,
            never_wait: false,
            origin: None,
            address_budget: None,
        }
    }

    /// Refuses a request that cannot start now, with the time at which to come back, instead of letting it wait. For
    /// callers with a queue of their own.
    #[must_use]
    pub fn never_wait(mut self) -> Self {
        self.never_wait = true;
        self
    }

    /// The origin of requests whose URI is relative. Without it they are refused.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Keeps a address_budget budget beside each host's own.
    #[cfg(feature = "client")]
    pub(crate) fn address_budget(mut self, address_budget: AddressBudget) -> Self {
        self.address_budget = Some(address_budget);
        self
    }

    #[cfg(feature = "client")]
    pub(crate) fn get_hosts(&self) -> &Hosts {
        &self.hosts
    }
}

impl<S> Layer<S> for HostBudgetLayer {
    type Service = HostBudget<S>;

    fn layer(&self, inner: S) -> Self::Service {
        HostBudget::with_settings(
            inner,
            self.hosts.clone(),
            self.never_wait,
            self.origin.clone(),
            self.address_budget.clone(),
        )
    }
}
