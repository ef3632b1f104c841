#!/bin/sh
# Shows that the timelines of Retry-After and budgets catch the seven faults that such code is known for, and other tests
# some more, three of which only certain interleavings show: each is put into a copy of the sources, and the runner has to
# fail there. Takes minutes, and is no part of the checks.
#
# Usage: tests/faults/run.sh [FAULT…], from anywhere in the repository. A copy's build goes to $CARGO_TARGET_DIR, or to
# the copy itself.
set -eu
root=$(git rev-parse --show-toplevel)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git -C "$root" ls-files -z | (cd "$root" && tar --null -T - -cf -) | tar -xf - -C "$copy"
cd "$copy"

decide=crates/etiquette-core/src/decide/host
hosts=crates/tower-etiquette/src/hosts
missed=0

# fault NAME ROWS FILE PERL-SUBSTITUTION [FILE PERL-SUBSTITUTION]…
fault() {
    name=$1
    rows=$2
    shift 2
    case " $wanted " in *" $name "* | "  ") ;; *) return 0 ;; esac
    while [ $# -gt 0 ]; do
        cp "$1" "$1.sound"
        perl -0pi -e "$2" "$1"
        if cmp -s "$1" "$1.sound"; then
            echo "$name: the sources have changed, the fault could not be put into $1"
            exit 2
        fi
        shift 2
    done
    if out=$(ETIQUETTE_ROWS=$rows cargo test -q -p etiquette-tests --test vectors retry_after::retry_after 2>&1); then
        echo "MISSED  $name"
        missed=1
    elif echo "$out" | grep -q '^scenarios.json '; then
        echo "caught  $name"
        echo "$out" | sed -n 's/^scenarios.json \([^:]*\):.*/            by \1/p'
    else
        echo "$out" | tail -30
        echo "$name: does not build"
        exit 2
    fi
    find crates -name '*.sound' | while read -r sound; do
        mv "$sound" "${sound%.sound}"
        # A restored file is older than the build of the faulty one.
        touch "${sound%.sound}"
    done
}

# seeded NAME TEST FILE PERL-SUBSTITUTION: the same for a test that is named by cargo's arguments.
seeded() {
    case " $wanted " in *" $1 "* | "  ") ;; *) return 0 ;; esac
    cp "$3" "$3.sound"
    perl -0pi -e "$4" "$3"
    if cmp -s "$3" "$3.sound"; then
        echo "$1: the sources have changed, the fault could not be put into $3"
        exit 2
    fi
    # shellcheck disable=SC2086
    if out=$(cargo test -q $2 2>&1); then
        echo "MISSED  $1"
        missed=1
    elif echo "$out" | grep -q '^test result: FAILED'; then
        echo "caught  $1"
        echo "$out" | sed -n 's/^    \([a-z_0-9]*::.*\|[a-z_]*\)$/            by \1/p' | sort -u
    else
        echo "$out" | tail -30
        echo "$1: does not build"
        exit 2
    fi
    mv "$3.sound" "$3"
    touch "$3"
}

wanted=$*
fault shorter-value-shortens 429-shorter-later "$decide/pause.rs" \
    's/map_or\(end, \|old\| old\.max\(end\)\)/map_or(end, |_| end)/'
fault rate-not-lowered 429-seconds,503-seconds,429-places-only,recovery,crawl-delay-after-429,429-for-ever-short \
    "$decide/backoff.rs" \
    's/self\.rate = \(self\.rate \* BACKOFF_FACTOR\)[^;]*;/let _ = floor;/'
fault queue-leaks-into-pause 429-seconds,429-date,503-seconds,pause-with-queue,order- "$decide/state.rs" \
    's/impl HostState \{/impl HostState {\n    \/\/\/ A fault.\n    pub fn leak(&mut self) { self.pause = Default::default(); }/' \
    "$hosts/budget.rs" \
    's/let decision = self\.state\.decide/self.state.leak(); let decision = self.state.decide/'
fault permit-back-before-body-ends body-holds-permit,gap-from-end crates/tower-etiquette/src/host_budget/service.rs \
    's/let permit = \(!ended\)\.then_some\(permit\);/let _ = ended; drop(permit); let permit = None;/'
fault zero-is-at-once 429-zero "$decide/response.rs" \
    's/\n\s*\.filter\(\|wait\| !wait\.is_zero\(\)\);/;/'
fault every-429-of-a-burst-counts 429-burst-one-incident,429-burst-no-header "$decide/backoff.rs" \
    's/\|last\| started <= last\)/|last| started > last.max(started))/'
fault cancelled-leave-phantoms cancel-waiting-head,cancel-waiting-many "$hosts/acquire.rs" \
    's/locked\.queue\.cancel\(request\.position, locked\.wakers\);/let _ = (locked, request);/'
models='-p tower-etiquette --lib hosts::model'
seeded a-cancelled-head-wakes-nobody "$models" "$hosts/queue/order.rs" \
    's/if concerned \{/if concerned \&\& false {/'
seeded an-end-wakes-nobody "$models" "$hosts/entry.rs" \
    's/(pub\(super\) fn finish\(.*?)queue\.wake_head\(wakers\);/$1let _ = wakers;/s'
seeded no-second-check-at-the-start "$models" "$hosts/queue/poll.rs" \
    's/let is_due = self\.due\(request, now\) <= now;/let is_due = self.due(request, now) <= now || true;/'
seeded a-token-too-many '-p etiquette-tests --test hosts an_api' "$decide/api.rs" \
    's/burst\.get\(\) - 1\)/burst.get())/'
seeded one-heap-below-a-budget '-p etiquette-tests --test contract waits' "$decide/spacing.rs" \
    's/self\.spaced_until\.max\(spaced\)/spaced/'
exit $missed
