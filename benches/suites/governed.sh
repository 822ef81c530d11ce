#!/bin/sh
# governed.sh COUNT DIR PROXY SERVER...: runs PROXY in front of SERVER with COUNT rules about tools, none of which
# matches what the load driver calls.
set -eu
count=$1 dir=$2 proxy=$3
shift 3
rules=$dir/rules-$count.toml
seq "$count" | sed 's/.*/[[policy.rules]]\nname = "rule-&"\nmatch = "tool:drop_&_*"\nverdict = "deny"/' > "$rules"
exec "$proxy" run --quiet --state-dir "$dir/state-$count" --rules "$rules" -- "$@"
