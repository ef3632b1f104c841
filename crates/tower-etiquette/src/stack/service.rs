use crate::accept::AcceptService;
use crate::conditional_cache::{ConditionalCache, MemoryStore};
use crate::host_budget::HostBudget;
use crate::preferences::PreferencesService;
use crate::retry_after::{EmptyBodies, RetryAfter};
use crate::robots::Robots;
use crate::user_agent::UserAgent;

/// What an [`Etiquette`](super::Etiquette) puts around a service `S`.
pub type EtiquetteService<S, St = MemoryStore, C = EmptyBodies> = UserAgent<
    AcceptService<PreferencesService<Robots<ConditionalCache<RetryAfter<HostBudget<S>, C>, St>>>>,
>;
