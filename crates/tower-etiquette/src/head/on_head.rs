use etiquette_core::Refusal;
use http::{request, response};

/// What a layer does with the heads that pass it. The configs of this crate's layers are what implements it.
pub trait OnHead {
    /// What is kept of a request until its response arrives.
    type Pending;

    /// Changes the head of a request.
    ///
    /// # Errors
    /// A [`Refusal`] where the request must not be sent.
    fn on_request(&self, request: &mut request::Parts) -> Result<Self::Pending, Refusal>;

    /// Reads the head of its response, or changes it.
    ///
    /// # Errors
    /// A [`Refusal`] where the response must not be used. Its body is then dropped unread.
    fn on_response(pending: Self::Pending, response: &mut response::Parts) -> Result<(), Refusal>;
}
