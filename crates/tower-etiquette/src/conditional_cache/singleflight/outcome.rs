//! What becomes of a request to the origin.

use std::sync::Arc;

use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_core::store::Variant;
use http::Response;

use super::super::body::{ResponseBody, Tee};
use super::super::delivery::{Delivery, SharedError};
use crate::Facts;

#[derive(Clone)]
pub(crate) enum FetchOutcome {
    /// The stored response satisfies the request.
    Stored {
        variant: Variant,
        status: CacheStatus,
        facts: Box<Facts>,
    },
    /// The origin's response, for the caller that made the request.
    Received {
        response: Delivery<Response<ResponseBody>>,
        /// Its body, where others may read it too.
        tee: Option<Arc<Tee>>,
    },
    /// There is no response.
    Failed(SharedError),
}
