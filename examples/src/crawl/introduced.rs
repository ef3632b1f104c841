//! Under which name a crawl asks.

use tower_etiquette::Identity;

use super::{Args, Error, targets};

/// A name, and whether somebody else may wonder about it.
#[derive(Clone, Debug)]
pub(crate) struct Introduced {
    pub(crate) identity: Identity,
    /// Whether a target is not loopback.
    pub(crate) elsewhere: bool,
}

/// Who asks the targets of `args`, if they may be asked like this.
///
/// # Errors
/// As [`run`](super::run), before anything is sent.
pub(crate) async fn introduced(args: &Args) -> Result<Introduced, Error> {
    let elsewhere = targets::check(args).await?;
    let identity = args.named.builder().build()?;
    Ok(Introduced {
        identity,
        elsewhere,
    })
}
