//! A permit that the store keeps for a request under way.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use etiquette_core::store::host::{HostEvent, HostReport, LeaseId, LeaseUpdate};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::client::StoreClient;
use crate::hosts::entry::Host;

/// A lease of a permit, renewed until it is dropped. The drop reports it as unused, unless its request was sent.
#[derive(Debug)]
pub(crate) struct Lease {
    client: Arc<StoreClient>,
    host: Arc<Host>,
    id: LeaseId,
    /// What the drop reports.
    report: HostReport,
    /// Ends when the lease is lost.
    renewal: Option<JoinHandle<()>>,
    lost: bool,
}

impl Lease {
    pub(super) fn new(
        client: Arc<StoreClient>,
        host: Arc<Host>,
        id: LeaseId,
        end: Instant,
    ) -> Self {
        let renewal = Handle::try_current().ok().map(|runtime| {
            let renewal = renew(Arc::clone(&client), Arc::clone(&host), id, end);
            runtime.spawn(renewal)
        });
        Self {
            client,
            host,
            id,
            report: HostReport::new(Some(LeaseUpdate::Unused(id)), None),
            renewal,
            lost: false,
        }
    }

    /// Ready when the permit is not ours any more, because the store could not be told in time that it is needed.
    pub(crate) fn poll_lost(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        if let Some(renewal) = &mut self.renewal
            && let Poll::Ready(ended) = Pin::new(renewal).poll(cx)
        {
            self.renewal = None;
            self.lost = ended.is_ok();
        }
        if self.lost {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Says that the permit is still needed.
    pub(crate) fn renewed(&self) -> LeaseUpdate {
        LeaseUpdate::Renewed(self.id)
    }

    /// Gives the permit back after the request was sent.
    pub(crate) fn end(mut self, event: Option<HostEvent>) {
        self.report = HostReport::new(Some(LeaseUpdate::Ended(self.id)), event);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
        self.client.report_later(&self.host, self.report);
    }
}

/// Renews a lease three times within its life, and oftener when that fails, until it is lost.
async fn renew(client: Arc<StoreClient>, host: Arc<Host>, id: LeaseId, mut end: Instant) {
    let interval = (client.store.lease() / 3).max(Duration::from_millis(1));
    let mut after = interval;
    loop {
        let left = end.saturating_duration_since(client.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(after.min(left)).await;
        let asked = client.now();
        if asked >= end {
            return;
        }
        let report = HostReport::new(Some(LeaseUpdate::Renewed(id)), None);
        let reported = client.report(&host, report);
        // What takes longer than the lease lasts is of no use any more.
        let reported = tokio::time::timeout(end - asked, reported).await;
        if reported == Ok(true) {
            end = client.lease_end(asked);
            after = interval;
        } else {
            after = interval / 4;
        }
    }
}
