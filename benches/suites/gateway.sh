#!/bin/sh
# gateway.sh COUNT DIR PROXY LISTEN SERVER...: runs PROXY as a gateway in front of COUNT servers. The first gives out its
# names as they are, so that the load driver calls it. SERVER is a command, or an address.
set -eu
count=$1 dir=$2 proxy=$3 listen=$4
shift 4
name=gateway-$count-$(echo "$listen" | tr -c '0-9a-z\n' '-')
config=$dir/$name.json
case $1 in
http*) where="\"url\":\"$1\"" ;;
*) where="\"command\":[$(printf '"%s",' "$@" | sed 's/,$//')]" ;;
esac
{
    printf '{"in_flight_per_client":1024,"servers":['
    for number in $(seq "$count"); do
        [ "$number" = 1 ] && prefix=false || prefix=true
        [ "$number" = 1 ] || printf ','
        printf '{"id":"s%s","prefix":%s,"in_flight":256,"queue":1024,%s}' "$number" "$prefix" "$where"
    done
    printf ']}'
} >"$config"
exec "$proxy" serve --config "$config" --listen "$listen" --quiet --state-dir "$dir/state-$name"
