#!/bin/sh
# What a machine of Forewarm runs when it boots: the operator's own start-up
# script, and beside it a watcher that
#   - writes what GPUs the driver shows, once that script has ended well,
#   - writes when Google announces that it takes the machine back,
#   - powers the machine off when nobody has moved its end and nothing computes.
# It talks to the metadata server only, and needs no credentials.

metadata=http://metadata.google.internal/computeMetadata/v1/instance
work=$(mktemp -d "${TMPDIR:-/var/tmp}/forewarm.XXXXXX") || exit 1

get() {
    curl -sf -m 5 -H 'Metadata-Flavor: Google' "$metadata/$1"
}

put() {
    printf '%s' "$2" | curl -sf -m 5 -o /dev/null -X PUT -H 'Metadata-Flavor: Google' \
        --data-binary @- "$metadata/guest-attributes/forewarm/$1"
}

# A driver that hangs must not hang the watcher: it is also the dead man's hand.
smi() {
    timeout 20 nvidia-smi "$@" --format=csv,noheader,nounits
}

# The name comes last because it alone may hold a comma. A GPU that counts no
# ECC errors says [N/A], which is none.
gpus() {
    rows=$(smi --query-gpu=index,uuid,memory.total,ecc.errors.uncorrected.volatile.total,name) || return 1
    [ -n "$rows" ] || return 1
    printf '%s\n' "$rows" | awk '
        BEGIN { FS = ", *"; printf "[" }
        {
            name = $5
            for (i = 6; i <= NF; i++) name = name ", " $i
            gsub(/["\\]/, "", name)
            if ($4 !~ /^[0-9]+$/) $4 = 0
            printf "%s{\"index\":%d,\"uuid\":\"%s\",\"name\":\"%s\",\"memory_mib\":%d,\"ecc_uncorrected\":%d}", \
                (NR > 1 ? "," : ""), $1, $2, name, $3, $4
        }
        END { printf "]" }'
}

report() {
    [ -f "$work/ended" ] || return 0
    ended=$(cat "$work/ended")
    if [ "$ended" != 0 ]; then
        [ -f "$work/failed" ] || { put error "the start-up script ended with $ended" && : >"$work/failed"; }
        return 0
    fi
    shown=$(gpus) || return 0
    [ "$shown" = "$(cat "$work/shown" 2>/dev/null)" ] && return 0
    put gpus "$shown" && printf '%s' "$shown" >"$work/shown"
}

notice() {
    [ -f "$work/noticed" ] && return 0
    [ "$(get preempted)" = TRUE ] || return 0
    put notice "$(date +%s)" && : >"$work/noticed"
}

# A driver that does not answer computes nothing.
idle() {
    command -v nvidia-smi >/dev/null 2>&1 || return 0
    apps=$(smi --query-compute-apps=pid) || return 0
    [ -z "$apps" ]
}

# The time is read anew each time, so that moving it is all it takes to renew.
expired() {
    expires=$(get attributes/forewarm-expires-at) || return 1
    case $expires in '' | *[!0-9]*) return 1 ;; esac
    [ "$(date +%s)" -ge "$expires" ]
}

# The notice of a spot machine is 30 s, hence 5 s. The driver is asked again
# every 5 minutes: memory errors come with time.
watch() {
    round=0
    while :; do
        notice
        if [ ! -f "$work/shown" ] || [ $((round % 60)) = 0 ]; then report; fi
        if expired && idle; then poweroff && exit 0; fi
        round=$((round + 1))
        sleep 5
    done
}

watch </dev/null >/dev/null 2>&1 &

status=0
if get attributes/forewarm-startup-script >"$work/script" && [ -s "$work/script" ]; then
    chmod 700 "$work/script"
    "$work/script"
    status=$?
fi
if [ "$status" = 0 ] && get attributes/forewarm-daemon-script >"$work/daemon" && [ -s "$work/daemon" ]; then
    sh "$work/daemon" || echo "forewarm: the daemon of this node was not installed" >&2
    rm -f "$work/daemon"
fi
echo "$status" >"$work/ended.new" && mv "$work/ended.new" "$work/ended"
