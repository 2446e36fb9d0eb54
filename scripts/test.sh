#!/usr/bin/env bash
# Installs, checks style and types, and runs every test that is not marked slow (those: -m slow).
#
#   scripts/test.sh [pytest arguments]     for example: scripts/test.sh -m slow
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install.sh
unset PYTHONDONTWRITEBYTECODE
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/pyright

# PostgreSQL runs under its own user; where it cannot be had, its tests are skipped (in CI they fail).
if [ -z "${FUTUREWORLD_POSTGRES:-}" ] && [ "$(id -u)" = 0 ]; then
  FUTUREWORLD_POSTGRES="$(scripts/postgres.sh)"
  export FUTUREWORLD_POSTGRES
  trap 'scripts/postgres.sh stop' EXIT
fi
.venv/bin/python -m pytest "$@"
