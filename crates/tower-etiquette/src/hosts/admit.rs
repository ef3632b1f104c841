//! What layers call: from a request to a service that may be called with it now.

use etiquette_core::Origin;
use http::Extensions;
use tower_service::Service;

use super::acquire::Acquire;
use super::address::{AddressAcquire, AddressBudget};
use super::handle::Hosts;
use super::permit::Permit;
use super::request::AcquireOptions;
use crate::BoxError;
use crate::ready::ready;

/// Waits for the turn of a request to `origin`, makes a clone of `inner` ready and stamps the start.
///
/// Nothing of the inner service is held while it waits for the host. Between the turn and the start pause, delay and rules
/// are checked once more, so that a pause that arrives while the inner service gets ready holds the request.
///
/// # Cancel safety
/// Dropping it leaves the queue, gives a reserved permit back and drops the inner clone with what it reserved.
pub(crate) async fn admit<S, R>(
    hosts: &Hosts,
    origin: &Origin,
    extensions: &Extensions,
    options: AcquireOptions,
    address: Option<&AddressBudget>,
    inner: S,
) -> Result<(S, Permit), BoxError>
where
    S: Service<R> + Clone,
    S::Error: Into<BoxError>,
{
    let new = || Acquire::new(&hosts.0, origin, origin, extensions, &options);
    let mut acquire = new()?;
    acquire.wait_for_redirect(options.not_before).await?;
    let mut address = address.map(|budget| AddressAcquire::new(budget, extensions, &options));
    loop {
        if let Some(address) = &mut address {
            address.release();
        }
        acquire.reserve().await?;
        let at = match &mut address {
            Some(address) => Some(address.reserve(&acquire).await?),
            None => None,
        };
        let mut service = inner.clone();
        ready(&mut service).await.map_err(Into::into)?;
        if !acquire.ask_store().await? {
            continue;
        }
        let Some((address, shared)) = at else {
            match acquire.start()? {
                Some(permit) => return Ok((service, permit)),
                None => continue,
            }
        };
        // The host first, because it has more reasons to refuse: a start that is stamped and not used costs a delay.
        if !shared.is_due() {
            acquire.release();
        } else if let Some(permit) = acquire.start()? {
            if let Some(shared) = shared.start()? {
                return Ok((service, permit.with_address(address, shared)));
            }
            // It has cost the host a delay, and is a new request there; its time goes on.
            drop(permit);
            acquire = new()?.until(acquire.deadline());
        }
    }
}
