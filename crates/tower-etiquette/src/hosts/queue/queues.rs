//! A host's own queue and those of the APIs on it.

use std::sync::Arc;

use etiquette_core::decide::host::ApiQuota;

use super::order::{Class, Position, Queue};
use super::unread::BodyMeter;

/// How many APIs of one host are in use at a time. A program declares few.
const MAX_APIS: usize = 16;

/// An API with a queue and a limit of its own. The queue is kept for as long as anybody holds one of these, or something is
/// owed to the API.
#[derive(Clone, Debug)]
pub(crate) struct ApiSlot {
    pub(crate) quota: ApiQuota,
    pub(crate) bodies: Arc<BodyMeter>,
}

#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// Numbers the positions of all queues.
    last_number: u64,
    pub(crate) host: Queue,
    apis: Vec<(ApiSlot, Queue)>,
}

impl Queues {
    /// The queue of an API, or the host's own.
    pub(crate) fn of(&mut self, api: Option<u64>) -> &mut Queue {
        let found = api.and_then(|api| {
            let mut apis = self.apis.iter_mut();
            apis.find(|(slot, _)| slot.quota.number == api)
        });
        match found {
            Some((_, queue)) => queue,
            None => &mut self.host,
        }
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        let apis = self.apis.iter_mut().map(|(_, queue)| queue);
        std::iter::once(&mut self.host).chain(apis)
    }

    fn all(&self) -> impl Iterator<Item = &Queue> {
        let apis = self.apis.iter().map(|(_, queue)| queue);
        std::iter::once(&self.host).chain(apis)
    }

    /// The requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.all().map(Queue::len).sum()
    }

    /// Nobody waits, and nobody still has to learn that it was denied.
    pub(crate) fn is_idle(&self) -> bool {
        self.all().all(Queue::is_idle)
    }

    /// The last position of a class.
    pub(crate) fn position(&mut self, class: Class) -> Position {
        self.last_number += 1;
        Position {
            class,
            number: self.last_number,
        }
    }

    /// The slot of an API; `None` when too many are in use. One that nobody uses makes room, unless something is `owed` to it.
    pub(crate) fn open_api(
        &mut self,
        quota: ApiQuota,
        mut owed: impl FnMut(u64) -> bool,
    ) -> Option<ApiSlot> {
        let mut known = self.apis.iter();
        if let Some((slot, _)) = known.find(|(slot, _)| slot.quota.number == quota.number) {
            let bodies = Arc::clone(&slot.bodies);
            return Some(ApiSlot { quota, bodies });
        }
        if self.apis.len() >= MAX_APIS {
            self.apis
                .retain(|(slot, _)| Arc::strong_count(&slot.bodies) > 1 || owed(slot.quota.number));
        }
        if self.apis.len() >= MAX_APIS {
            return None;
        }
        let bodies = Arc::default();
        let slot = ApiSlot { quota, bodies };
        self.apis.push((slot.clone(), Queue::default()));
        Some(slot)
    }
}
