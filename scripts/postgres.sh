#!/usr/bin/env bash
# Start a PostgreSQL server for tests and print its SQLAlchemy URL: scripts/postgres.sh [start|stop]
#
#   export FUTUREWORLD_POSTGRES=$(scripts/postgres.sh)
#
# It listens on 127.0.0.1 only, on a free port, with trust authentication: for tests, not for data
# that must stay private. PostgreSQL refuses to run as root, so root starts Debian's cluster under
# the user postgres. A server that runs already is used again; `stop` stops it and deletes its data.
set -euo pipefail

user=$(id -un)
home=${TMPDIR:-/tmp}/futureworld-postgres-$user
if [ "$user" = root ]; then
  user=postgres
  home=/var/lib/postgresql/futureworld-test
fi

fail() { echo "postgres.sh: $*" >&2; exit 1; }

# The newest installed server's programs: Debian keeps them out of PATH.
find_bin() {
  local initdb
  initdb=$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -V | tail -n 1 || true)
  if [ -n "$initdb" ]; then dirname "$initdb"; fi
}

as_server() {
  if [ "$(id -u)" = 0 ]; then (cd / && runuser -u "$user" -- "$@"); else "$@"; fi
}

install_server() {
  [ "$(id -u)" = 0 ] || fail "no PostgreSQL found; install it (Debian: apt-get install postgresql) and run again"
  command -v apt-get >/dev/null || fail "no PostgreSQL and no apt-get found; install PostgreSQL 15 or later"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; } >&2 \
    || fail "apt-get could not install postgresql; its messages stand above"
}

free_port() {
  local port
  for port in $(seq 54320 54420); do
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then echo "$port"; return; fi
  done
  fail "no free port between 54320 and 54420"
}

running() { [ -f "$home/data/PG_VERSION" ] && as_server "$bin/pg_ctl" -D "$home/data" status >/dev/null; }

start() {
  local port
  if ! running; then
    if [ ! -f "$home/data/PG_VERSION" ]; then
      rm -rf "$home/data"
      mkdir -p "$home"
      if [ "$(id -u)" = 0 ]; then chown "$user" "$home"; fi
      as_server "$bin/initdb" -D "$home/data" -U futureworld -A trust -E UTF8 --locale=C.UTF-8 >&2
    fi
    port=$(free_port)
    as_server "$bin/pg_ctl" -D "$home/data" -l "$home/log" -w \
      -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=''" start >&2 \
      || fail "the server did not start; see $home/log"
  fi
  port=$(as_server sed -n 4p "$home/data/postmaster.pid")
  echo "postgresql+psycopg://futureworld@127.0.0.1:$port/postgres"
}

stop() {
  if [ -n "$bin" ] && running; then as_server "$bin/pg_ctl" -D "$home/data" -m fast -w stop >&2; fi
  rm -rf "$home"
}

bin=$(find_bin)
case "${1:-start}" in
  start)
    if [ -z "$bin" ]; then install_server; bin=$(find_bin); fi
    [ -n "$bin" ] || fail "PostgreSQL is installed, but its initdb was not found"
    start
    ;;
  stop) stop ;;
  *) fail "expected start or stop, found '$1'" ;;
esac
