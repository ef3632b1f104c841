//! Hours, days and weeks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);
pub(super) const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// Hours since 1970 and the hour of the week, which begins on a Thursday as the epoch does.
pub(super) fn hour_of_week(at: SystemTime) -> (u64, u64) {
    let hours = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 3600;
    (hours, hours % (7 * 24))
}
