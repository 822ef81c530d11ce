#!/usr/bin/env bash
# Installs what checks exports: a HAR validator from npm, and Chromium from the system's packages if there
# is no browser and we may install one. Safe to run again.
set -euo pipefail

dir=${MCP_INTEROP_DIR:-${TMPDIR:-/tmp}/mcp-proxy-interop}/exports
har_pin=har-validator@5.1.5

mkdir -p "$dir"
exec 9>"$dir/.lock"
flock 9

if [ "$(cat "$dir/stamp" 2>/dev/null)" != "$har_pin" ]; then
  echo '{"private":true}' >"$dir/package.json"
  npm install --prefix "$dir" --save-exact --no-audit --no-fund --ignore-scripts --loglevel=error "$har_pin"
  echo "$har_pin" >"$dir/stamp"
fi

if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -y --no-install-recommends chromium >/dev/null ||
      { apt-get update >/dev/null && apt-get install -y --no-install-recommends chromium >/dev/null; } ||
      echo "setup.sh: CHROMIUM CANNOT BE INSTALLED; pages will not be checked" >&2
  else
    echo "setup.sh: NO BROWSER IS INSTALLED; pages will not be checked" >&2
  fi
fi
echo "ready: $dir"
