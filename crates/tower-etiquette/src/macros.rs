//! The accessors that every layered service has.

/// Gives `$service<S>` with a field `inner: S` the accessors that tower services have. Further type parameters follow its
/// name.
macro_rules! inner_accessors {
    ($service:ident $(, $parameter:ident)*) => {
        impl<S $(, $parameter)*> $service<S $(, $parameter)*> {
            /// The inner service.
            #[must_use]
            pub fn get_ref(&self) -> &S {
                &self.inner
            }

            /// The inner service, to change it.
            pub fn get_mut(&mut self) -> &mut S {
                &mut self.inner
            }

            /// Gives the inner service back.
            #[must_use]
            pub fn into_inner(self) -> S {
                self.inner
            }
        }
    };
}

pub(crate) use inner_accessors;
