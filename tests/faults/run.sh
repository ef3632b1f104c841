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

state=crates/etiquette-core/src/decide/host/state.rs
answered=crates/etiquette-core/src/decide/host/answered.rs
backoff=crates/etiquette-core/src/decide/host/backoff.rs
classify=crates/etiquette-core/src/decide/host/classify.rs
budget=crates/tower-etiquette/src/host_budget/service.rs
host=crates/tower-etiquette/src/hosts/host.rs
line=crates/tower-etiquette/src/hosts/line.rs
ticket=crates/tower-etiquette/src/hosts/ticket.rs
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
    find crates -name '*.sound' | while read -r sound; do mv "$sound" "${sound%.sound}"; done
    # A restored file is older than the build of the faulty one.
    touch "$state" "$answered" "$backoff" "$classify" "$budget" "$host" "$line" "$ticket"
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
fault shorter-value-shortens 429-shorter-later "$backoff" \
    's/map_or\(end, \|old\| old\.max\(end\)\)/map_or(end, |_| end)/'
fault rate-not-lowered 429-seconds,503-seconds,429-places-only,recovery,crawl-delay-after-429,429-for-ever-short "$backoff" \
    's/self\.rate = \(self\.rate \/ 2\.0\)[^;]*;/let _ = floor;/'
fault queue-leaks-into-pause 429-seconds,429-date,503-seconds,pause-with-queue,order- "$state" \
    's/impl HostState \{/impl HostState {\n    \/\/\/ A fault.\n    pub fn leak(&mut self) { self.pause_until = None; }/' \
    "$line" \
    's/let decision = core\.decide/core.state.leak(); let decision = core.decide/'
fault place-back-before-body-ends body-holds-permit,gap-from-end "$budget" \
    's/let grant = \(!ended\)\.then_some\(grant\);/let _ = ended; drop(grant); let grant = None;/'
fault zero-is-at-once 429-zero "$classify" \
    's/\n\s*\.filter\(\|wait\| !wait\.is_zero\(\)\);/;/'
fault every-429-of-a-burst-counts 429-burst-one-incident,429-burst-no-header "$answered" \
    's/received\.started <= backoff\)/received.started > now.max(backoff))/'
fault cancelled-leave-phantoms cancel-waiting-head,cancel-waiting-many "$ticket" \
    's/Holding::Line => self\.host\.leave\(self\.position, self\.ask\)/Holding::Line => {}/'
models='-p tower-etiquette --lib hosts::model'
seeded a-cancelled-head-wakes-nobody "$models" "$line" \
    's/wake\(wakers\.into_iter\(\)\.flatten\(\)\);/drop(wakers);/'
seeded an-end-wakes-nobody "$models" "$host" \
    's/(pub\(super\) fn finish\(.*?)wake\(waker\);/$1drop(waker);/s'
seeded no-second-look-at-the-start "$models" "$host" \
    's/let outcome = if core\.due\(policy, now, ask\) > now \{/let outcome = if core.due(policy, now, ask) > now \&\& false {/'
seeded a-token-too-many '-p etiquette-tests --test hosts an_api' crates/etiquette-core/src/decide/host/api.rs \
    's/burst\.get\(\) - 1\)/burst.get())/'
seeded one-heap-below-a-budget '-p etiquette-tests --test contract waits' "$state" \
    's/due = due\.max\(self\.spaced_until\.unwrap_or\(now\)\);//'
exit $missed
