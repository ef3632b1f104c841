//! Budgets: each call is one run of the script.

use std::sync::atomic::Ordering;
use std::time::Duration;

use etiquette_core::decide::host::Signal;
use etiquette_core::store::StoreFailed;
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostReport, HostStore, HostStoreFuture, LeaseUpdate, LocalView,
    Outage, SharedView,
};
use tokio::time::Instant;

use crate::store::{BUCKETS, RedisStore};

/// What the script returns to `acquire`: granted, wait, pause, delay, since the last start, starts, backoff level.
type Row = (u8, u64, u64, u64, i64, u64, u32);

impl HostStore for RedisStore {
    fn acquire<'a>(
        &'a self,
        seen: LocalView<'a>,
        ask: AcquireRequest,
    ) -> HostStoreFuture<'a, Acquired> {
        Box::pin(async move {
            // On a clock of its own nothing is late.
            let timed = self.0.settings.clock.load(Ordering::SeqCst) == 0;
            let late = if timed {
                self.0.late.load(Ordering::Relaxed)
            } else {
                0
            };
            let asked = Instant::now();
            let call = self.call("acquire", seen, |call| {
                call.arg(self.lease_name(ask.lease.0))
                    .arg(u8::from(ask.options.pauses_only))
                    .arg(u8::from(ask.options.delay_taken))
                    .arg(ask.started);
                match ask.crawl_delay {
                    Some((origin, delay)) => {
                        call.arg(format!("{origin:x}")).arg(delay.map_or(0, micros))
                    }
                    None => call.arg("").arg(-1),
                };
                call.arg(late).arg(u8::from(ask.counted));
            });
            let row: Row = call.await?;
            let (granted, wait, pause, delay, since, started, backoff_level) = row;
            let mut shared = SharedView::default();
            shared.pause = Duration::from_micros(pause);
            shared.delay = Duration::from_micros(delay);
            shared.since_start = u64::try_from(since).ok().map(Duration::from_micros);
            shared.started = started;
            shared.backoff_level = backoff_level;
            let took = micros(asked.elapsed());
            // Twice what an answer takes; it comes down slowly.
            let learnt = took.saturating_mul(2).max(late - late / 16).max(1_000);
            self.0.late.store(learnt, Ordering::Relaxed);
            if granted == 0 {
                return Ok(Acquired::Wait(Duration::from_micros(wait), shared));
            }
            let spaced =
                timed && !ask.options.pauses_only && seen.policy.get_max_in_flight().get() > 1;
            if spaced && took > late {
                // The next one may start sooner after this one than the delay: it is given back.
                let unused = Some(LeaseUpdate::Unused(ask.lease));
                self.report(seen, HostReport::new(unused, None)).await?;
                return Ok(Acquired::Wait(Duration::ZERO, shared));
            }
            Ok(Acquired::Granted(shared))
        })
    }

    fn report<'a>(&'a self, seen: LocalView<'a>, report: HostReport) -> HostStoreFuture<'a, ()> {
        Box::pin(async move {
            let call = self.call("tell", seen, |call| {
                let (lease, change) = match report.lease {
                    Some(LeaseUpdate::Renewed(lease)) => (self.lease_name(lease.0), "renew"),
                    Some(LeaseUpdate::Ended(lease)) => (self.lease_name(lease.0), "end"),
                    Some(LeaseUpdate::Unused(lease)) => (self.lease_name(lease.0), "unused"),
                    _ => (String::new(), "none"),
                };
                call.arg(lease).arg(change);
                let Some(event) = report.event else {
                    call.arg("");
                    return;
                };
                let (least, most) = seen.policy.get_jitter();
                let share = least + (most - least) * event.jitter.clamp(0.0, 1.0);
                let signal = match event.response.signal {
                    Signal::Success => "success",
                    Signal::Throttled => "throttled",
                    Signal::Unavailable => "unavailable",
                    Signal::Failed => "failed",
                    Signal::Refused => "refused",
                    _ => "neutral",
                };
                call.arg(signal);
                match event.response.wait {
                    Some(wait) => call.arg(micros(wait)),
                    None => call.arg(-1),
                };
                call.arg(u8::from(event.response.counts_for_latency))
                    .arg(u8::from(event.page))
                    .arg(share)
                    .arg(micros(event.since_start))
                    .arg(span(event.latency));
            });
            let _: Row = call.await?;
            Ok(())
        })
    }

    fn lease(&self) -> Duration {
        self.0.settings.lease
    }

    fn outage(&self) -> Outage {
        Outage::new(self.0.settings.hold, self.0.settings.nodes)
    }
}

impl RedisStore {
    /// One run of the script about a host.
    fn call<T: redis::FromRedisValue>(
        &self,
        operation: &'static str,
        seen: LocalView<'_>,
        more: impl FnOnce(&mut redis::ScriptInvocation<'_>),
    ) -> impl Future<Output = Result<T, StoreFailed>> {
        let bucket = Self::bucket(seen.host);
        let mut call = self.0.script.key(self.key(bucket, "mark", ""));
        call.key(self.key(bucket, "h", seen.host))
            .key(self.key(bucket, "l", seen.host));
        let policy = seen.policy;
        let present = self.0.settings.clock.load(Ordering::SeqCst);
        self.0.connection.call(
            "share a host's budget",
            bucket,
            move |mut server| async move {
                call.arg(operation)
                    .arg(present)
                    .arg(&*server.run)
                    .arg(micros(self.0.settings.lease))
                    .arg(policy.get_max_in_flight().get())
                    .arg(micros(policy.get_min_delay()))
                    .arg(micros(policy.get_max_delay()))
                    .arg(policy.get_latency_factor())
                    .arg(micros(policy.get_default_pause()))
                    .arg(micros(policy.get_default_pause_503()))
                    .arg(policy.get_blocked_after().get())
                    .arg(micros(seen.pause))
                    .arg(span(seen.since_start))
                    .arg(span(seen.since_end));
                more(&mut call);
                call.invoke_async(&mut server.connection).await
            },
        )
    }

    /// Marks all buckets as known from now on, where they are not yet. A host that is met first on a server in use
    /// then waits no longer than any other.
    pub(crate) async fn mark_all(&self) -> Result<(), StoreFailed> {
        let lease = micros(self.0.settings.lease);
        let present = self.0.settings.clock.load(Ordering::SeqCst);
        let doing = "be prepared";
        let timeout = self.0.settings.timeout * 4;
        let mut left = Vec::new();
        for bucket in 0..BUCKETS {
            let mut call = self.0.script.key(self.key(bucket, "mark", ""));
            call.key(self.key(bucket, "h", "-"))
                .key(self.key(bucket, "l", "-"))
                .arg("mark")
                .arg(present);
            let marked = self.0.connection.call_within(
                doing,
                bucket,
                timeout,
                move |mut server| async move {
                    call.arg(&*server.run).arg(lease);
                    call.invoke_async::<(u64,)>(&mut server.connection).await
                },
            );
            left.push(marked.await?.0);
        }
        // New by less than a call takes: it was this one.
        if left.iter().any(|left| *left + 100_000 > lease) {
            self.0.connection.forgot();
        }
        Ok(())
    }

    fn lease_name(&self, number: u64) -> String {
        format!("{:x}.{number:x}", self.0.owner)
    }
}

fn micros(span: Duration) -> u64 {
    // What a number in Lua holds exactly, and more than the script keeps.
    u64::try_from(span.as_micros())
        .unwrap_or(u64::MAX)
        .min(1 << 52)
}

fn span(span: Option<Duration>) -> i64 {
    span.map_or(-1, |span| micros(span) as i64)
}
