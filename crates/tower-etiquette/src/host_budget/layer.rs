use etiquette_core::Origin;

use crate::hosts::{AddressBudget, Hosts};

/// Gives every host a budget; see the [module](crate::host_budget).
#[derive(Clone, Debug)]
pub struct HostBudgetLayer {
    pub(super) config: HostBudgetConfig,
}

#[derive(Clone, Debug)]
pub(super) struct HostBudgetConfig {
    pub(super) hosts: Hosts,
    pub(super) never_wait: bool,
    pub(super) origin: Option<Origin>,
    pub(super) address_budget: Option<AddressBudget>,
}

impl HostBudgetLayer {
    /// A budget for each of `hosts`, under their policy.
    #[must_use]
    pub fn new(hosts: Hosts) -> Self {
        Self {
            config: HostBudgetConfig {
                hosts,
                never_wait: false,
                origin: None,
                address_budget: None,
            },
        }
    }

    /// Refuses a request that cannot start now, with the time at which to come back, instead of letting it wait. For
    /// callers with a queue of their own.
    #[must_use]
    pub fn never_wait(mut self) -> Self {
        self.config.never_wait = true;
        self
    }

    /// The origin of requests whose URI is relative. Without it they are refused.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.config.origin = Some(origin);
        self
    }

    /// Keeps a second budget for the address of each host.
    #[cfg(feature = "client")]
    pub(crate) fn address_budget(mut self, budget: AddressBudget) -> Self {
        self.config.address_budget = Some(budget);
        self
    }

    #[cfg(feature = "client")]
    pub(crate) fn get_hosts(&self) -> &Hosts {
        &self.config.hosts
    }
}
