//! What the services of all layers, and newtypes over bodies, have in common.

/// Gives the service of a layer its constructors: `service_constructors!(UserAgent, UserAgentLayer, identity: Identity)`
/// for `UserAgent::new(inner, identity)` and `UserAgent::layer(identity)`.
macro_rules! service_constructors {
    ($service:ident, $layer:ident $(, $argument:ident: $type:ty)*) => {
        impl<S> $service<S> {
            #[doc = concat!("`inner` in the layer of [`", stringify!($layer), "::new`].")]
            #[must_use]
            pub fn new(inner: S $(, $argument: $type)*) -> Self {
                tower_layer::Layer::layer(&$layer::new($($argument),*), inner)
            }
        }

        impl $service<()> {
            #[doc = concat!("Shortcut for [`", stringify!($layer), "::new`].")]
            pub fn layer($($argument: $type),*) -> $layer {
                $layer::new($($argument),*)
            }
        }
    };
}

/// Gives a service with a field `inner: S` the accessors that tower's services have: `inner_accessors!(Service)` for
/// `Service<S>`, `inner_accessors!(Service<S, St>)` for one with further parameters.
macro_rules! inner_accessors {
    ($service:ident) => {
        $crate::macros::inner_accessors!($service<S>);
    };
    ($service:ident<$inner:ident $(, $further:ident)*>) => {
        impl<$inner $(, $further)*> $service<$inner $(, $further)*> {
            /// The inner service.
            #[must_use]
            pub fn get_ref(&self) -> &$inner {
                &self.inner
            }

            /// The inner service, to change it.
            pub fn get_mut(&mut self) -> &mut $inner {
                &mut self.inner
            }

            /// Gives the inner service back.
            #[must_use]
            pub fn into_inner(self) -> $inner {
                self.inner
            }
        }
    };
}

/// Makes a newtype over a body of bytes a body: `forward_body!(Body, BoxError)` for `struct Body(Inner)`.
macro_rules! forward_body {
    ($body:ident, $error:ty) => {
        impl http_body::Body for $body {
            type Data = bytes::Bytes;
            type Error = $error;

            fn poll_frame(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, $error>>> {
                std::pin::Pin::new(&mut self.0).poll_frame(cx)
            }

            fn is_end_stream(&self) -> bool {
                self.0.is_end_stream()
            }

            fn size_hint(&self) -> http_body::SizeHint {
                self.0.size_hint()
            }
        }
    };
}

/// `Debug` for a type whose parts say nothing: `opaque_debug!(Body)`, `opaque_debug!(BoxedFuture<B>)`.
macro_rules! opaque_debug {
    ($type:ident $(<$($parameter:ident $(: $bound:path)?),+>)?) => {
        impl $(<$($parameter $(: $bound)?),+>)? std::fmt::Debug for $type $(<$($parameter),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use {forward_body, inner_accessors, opaque_debug, service_constructors};
