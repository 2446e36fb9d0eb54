#!/usr/bin/env bash
# Makes .venv from the pinned set that was seen to work together, and checks that it imports.
#
#   scripts/install.sh [cpu|gpu]     default: cpu where no NVIDIA driver answers, else gpu
#
# Quick when nothing changed: a stamp holds the hash of everything that was installed.
set -euo pipefail
cd "$(dirname "$0")/.."

flavour="${1:-}"
if [ -z "$flavour" ]; then
  if nvidia-smi -L >/dev/null 2>&1; then flavour=gpu; else flavour=cpu; fi
fi
pins="scripts/requirements-$flavour.txt"
[ -f "$pins" ] || { echo "usage: scripts/install.sh [cpu|gpu]" >&2; exit 2; }

fail() { echo "install: $*" >&2; exit 1; }

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail \
  "training needs Linux on x86-64, this is $(uname -s) on $(uname -m). The base package (questions, store, scores)" \
  "runs anywhere with Python 3.11 or newer: pip install -e ."

python="${PYTHON:-}"
for candidate in python3.11 python3; do
  [ -n "$python" ] && break
  if command -v "$candidate" >/dev/null && [ "$("$candidate" -c 'import sys; print(sys.version_info[:2] == (3, 11))')" = True ]; then
    python="$candidate"
  fi
done
[ -n "$python" ] || fail "training needs Python 3.11 (the pinned wheels are built for it); install it or set PYTHON"

stamp="$(cat "$pins" pyproject.toml packaging/vllm-dist/pyproject.toml "$0" | sha256sum | cut -c1-16) $flavour"
if [ -x .venv/bin/futureworld ] && [ "$(cat .venv/installed 2>/dev/null)" = "$stamp" ]; then
  echo "install: .venv is up to date ($flavour)"
  exit 0
fi

# Bytecode is compiled once here; without it every process of the engine compiles its imports anew (3x slower).
unset PYTHONDONTWRITEBYTECODE
started=$SECONDS
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
rm -f .venv/installed
export PIP_DISABLE_PIP_VERSION_CHECK=1
.venv/bin/python -m pip install -q uv==0.13.9

# --no-deps: the pins are the whole set. Resolving would bring torchvision, torchaudio and torchcodec as CUDA
# builds, which break `import transformers` beside a CPU torch.
uv=(.venv/bin/uv pip install -q --python .venv/bin/python --no-deps)
if [ "$flavour" = cpu ]; then
  torch="$(grep '^torch==' "$pins")"
  grep -v '^torch==' "$pins" > .venv/pins-without-torch.txt
  # The CPU build of torch: a wheel folder configured for pip on this machine, else uv's own choice of a CPU build.
  links=()
  for folder in ${FUTUREWORLD_WHEELS:-} ${PIP_FIND_LINKS:-} $(.venv/bin/python -m pip config get global.find-links 2>/dev/null || true); do
    [ -d "$folder" ] && links+=(--find-links "$folder")
  done
  echo "install: $torch"
  "${uv[@]}" "${links[@]}" "$torch" 2>.venv/torch.log ||
    "${uv[@]}" --torch-backend cpu "$torch" 2>>.venv/torch.log || {
      cat .venv/torch.log >&2
      fail "no CPU build of $torch was found. Put its wheel into a folder and name that folder in FUTUREWORLD_WHEELS." \
        "The CUDA build of several GB is never taken in its place."
    }
  echo "install: $(grep -c == .venv/pins-without-torch.txt) pinned packages"
  "${uv[@]}" "${links[@]}" -r .venv/pins-without-torch.txt
  "${uv[@]}" --no-build-isolation ./packaging/vllm-dist
  rm -rf packaging/vllm-dist/build packaging/vllm-dist/*.egg-info
else
  "${uv[@]}" -r "$pins"
fi
"${uv[@]}" --no-build-isolation -e .

echo "install: compiling bytecode"
.venv/bin/python -m compileall -q -j 0 .venv/lib/python3.11/site-packages >/dev/null 2>&1 || true
echo "install: checking imports"
.venv/bin/python -W ignore - <<'PY'
import logging
logging.disable(logging.WARNING)
import torch, transformers, ray, vllm, verl, transfer_queue, futureworld, verl_tool_future
print(f"install: torch {torch.__version__}, vllm {vllm.__version__}, verl {verl.__version__}, ray {ray.__version__}")
PY
echo "$stamp" > .venv/installed
echo "install: done in $((SECONDS - started)) s"
