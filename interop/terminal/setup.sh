#!/usr/bin/env bash
# Installs tmux from the system's packages if it is missing and we may. Safe to run again. The peers are
# `interop/setup.sh`'s.
set -euo pipefail

if ! command -v tmux >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -y --no-install-recommends tmux >/dev/null ||
      { apt-get update >/dev/null && apt-get install -y --no-install-recommends tmux >/dev/null; } ||
      echo "setup.sh: TMUX CANNOT BE INSTALLED; the terminal will not be checked" >&2
  else
    echo "setup.sh: NO TMUX IS INSTALLED; the terminal will not be checked" >&2
  fi
fi
echo "ready: $(command -v tmux || echo 'no tmux')"
