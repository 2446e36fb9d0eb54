# Shared by ask.sh and learn.sh, which source it: one job at a time on a run, a log, failed stages tried again.
#
# Settings, from the environment:
#   FUTUREWORLD   the command (default: this checkout's .venv/bin/futureworld)
#   TRIES         how often a stage is tried (default 3)
#   PAUSE         seconds between two tries (default 60)
#   WAIT          seconds to wait for the other job (default 21600: the day's prediction may still run)
#   ZONE          the zone whose date is today (default Asia/Shanghai, as schedule.zone)
#
# Exit codes: 0 done, 64 called wrongly, 75 the other job held the run for WAIT seconds, else the failed stage's own.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
futureworld="${FUTUREWORLD:-$root/.venv/bin/futureworld}"

# say WORDS: one line with the moment, into the log.
say() { echo "$(date -u +%FT%TZ) $job $day: $*"; }

# complain CODE WORDS: the reason into the log and, for cron's mail, on standard error; then end.
complain() {
  local code="$1"
  shift
  say "$*"
  echo "$job $day: $*; see $log" >&3
  exit "$code"
}

# begin JOB RUN [DAY]: from here on everything goes to RUN/logs/daily/JOB-DAY.log, and the run is this job's.
begin() {
  job="$1" run="$2" day="${3:-$(TZ="${ZONE:-Asia/Shanghai}" date +%F)}"
  [[ "$day" =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] && date -d "$day" >/dev/null 2>&1 || { echo "$job: day '$day' is not of the form 2026-05-04" >&2; exit 64; }
  [[ "${TRIES:-3}" =~ ^[1-9][0-9]*$ ]] || { echo "$job: TRIES '$TRIES' is not a number above 0" >&2; exit 64; }
  mkdir -p "$run/logs/daily"
  log="$run/logs/daily/$job-$day.log"
  exec 3>&2 >>"$log" 2>&1
  exec 9>"$run/logs/daily/lock"
  flock -w "${WAIT:-21600}" 9 || complain 75 "the other job still holds the run after ${WAIT:-21600} s; nothing was done"
  say "begins"
}

# stage NAME [OPTIONS]: one stage of the day, again after a pause where it failed. Stages are safe to repeat.
stage() {
  local try code=0
  for ((try = 1; try <= ${TRIES:-3}; try++)); do
    [ "$try" = 1 ] || sleep "${PAUSE:-60}"
    say "$1, try $try"
    code=0
    "$futureworld" "$1" --run "$run" --day "$day" "${@:2}" 3>&- 9>&- || code=$?
    [ "$code" = 0 ] && return
    say "$1 ended with code $code"
  done
  complain "$code" "$1 failed ${TRIES:-3} times, the last with code $code"
}
