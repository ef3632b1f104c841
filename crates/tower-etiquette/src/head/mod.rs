//! The one service, and the one future, of the layers that work on heads and leave bodies alone.
//!
//! [`UserAgentLayer`](crate::UserAgentLayer), [`PreferencesLayer`](crate::PreferencesLayer) and `SignLayer` change the
//! head of a request or read that of a response, and may refuse either; nothing waits, nothing is buffered. Their
//! services are aliases of [`HeadService`].

mod future;
mod on_head;
mod service;

pub use future::ResponseFuture;
pub use on_head::OnHead;
pub use service::HeadService;
