#!/usr/bin/env bash
# The evening's first job: collect, ask, predict with the newest checkpoint. Safe to run again at any time.
#
#   scripts/daily/ask.sh RUN CONFIG [DAY]     DAY: 2026-05-04; default: today in the schedule's zone
#
# CONFIG makes the run on its first day and is checked against it afterwards. Settings: scripts/daily/common.sh
set -euo pipefail
source "$(dirname "$0")/common.sh"
[ $# -ge 2 ] && [ $# -le 3 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 64; }

begin ask "$1" "${3:-}"
if [ ! -e "$run/config.yaml" ]; then # a wrong key of verl would else be met tomorrow, by the first update
  "$futureworld" replay --dry-run --config "$2" 3>&- 9>&- || complain $? "the configuration $2 was refused"
fi
stage collect --config "$2"
stage ask --config "$2"
stage predict
say "done"
