//! Where a redirect leads.

use etiquette_core::Origin;
use etiquette_robots::resolve;
use http::Uri;

/// The target of a Location field on the response to `from` (RFC 9110, 10.2.2), if HTTP can ask for it.
pub(crate) fn redirect_target(from: &Uri, location: &str) -> Option<Uri> {
    let target = resolve(&from.to_string(), location)?.parse().ok()?;
    is_http(&target).then_some(target)
}

/// Whether HTTP can ask for it: an absolute `http` or `https` URI with a host.
pub(crate) fn is_http(uri: &Uri) -> bool {
    Origin::of(uri).is_ok()
}
