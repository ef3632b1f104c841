use super::ResponseBody;
use crate::boxed::BoxedFuture;

/// The future of [`HostBudget`](super::HostBudget).
///
/// # Cancel safety
/// Dropped while it waits, it leaves the queue and the next one takes its turn at the same instant. Dropped while the
/// inner service gets ready, it gives the permit back unused. Dropped while the request is under way, it drops the inner
/// call and gives the permit back; the delay counts from its start and from the drop. Dropped while a response waits for
/// the journal, the response is recorded and written all the same.
pub type ResponseFuture<B> = BoxedFuture<ResponseBody<B>>;
