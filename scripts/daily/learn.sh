#!/usr/bin/env bash
# The evening's second job: resolve what is due, then update to the next checkpoint. Safe to run again at any time.
#
#   scripts/daily/learn.sh RUN [DAY]     DAY: 2026-05-05; default: today in the schedule's zone
#
# Waits for ask.sh of the same run. Held-out days lie after the last one, so `futureworld evaluate --run RUN` is no
# part of a day. Settings: scripts/daily/common.sh
set -euo pipefail
source "$(dirname "$0")/common.sh"
[ $# -ge 1 ] && [ $# -le 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 64; }

[ -e "$1/config.yaml" ] || { echo "learn: $1 is no run folder; ask.sh makes it" >&2; exit 64; }
begin learn "$1" "${2:-}"
stage resolve
stage update
say "done"
