#!/usr/bin/env bash
# Installs what checks the control API against its own description. Safe to run again.
set -euo pipefail

dir=${MCP_INTEROP_DIR:-${TMPDIR:-/tmp}/mcp-proxy-interop}/control
pin=schemathesis==4.32.5

mkdir -p "$dir"
exec 9>"$dir/.lock"
flock 9

if [ "$(cat "$dir/stamp" 2>/dev/null)" != "$pin" ]; then
  rm -rf "$dir/venv" "$dir/stamp"
  python3 -m venv "$dir/venv"
  "$dir/venv/bin/pip" install --quiet --disable-pip-version-check "$pin"
  echo "$pin" >"$dir/stamp"
fi
echo "ready: $dir"
