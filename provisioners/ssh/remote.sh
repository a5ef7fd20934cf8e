# Read by /bin/sh on a machine of the operator, from standard input, with one
# line appended that calls main. Everything is a function, so that a script that
# was cut off on its way does nothing. Arguments arrive as arguments and are never
# evaluated, but for the operator's own commands.
#
# STATE/HOST/            a folder for each machine, since homes may be shared
#   lock                 held for as long as anything is decided
#   current              a link whose text is the id of the claim that stands
#   claims/ID/claim      who claimed the machine; written before the link
#   claims/ID/ended      when its end was asked for
#   claims/ID/probe      what the last probe found
#   claims/ID/boot.*     the setup: lock of its process, pid, log, exit code
#   claims/ID/wipe.*     the same of the wipe
#   passed/TOKEN         the machine was taken when this token came by: never again
#   files/SHA256         what was copied here
umask 077

fail() {
    echo "forewarm: $*" >&2
    exit 1
}

enter() { # STATE -s|-x
    for tool in flock setsid timeout readlink find; do
        command -v "$tool" >/dev/null || fail "the machine has no $tool"
    done
    home=$1/$(uname -n)
    [ -d "$home/files" ] || mkdir -p "$home/claims" "$home/passed" "$home/files" || fail "no state folder $1"
    cd "$home" || fail "no state folder $1"
    exec 9>>lock
    flock -w 20 "$2" 9 || fail "somebody holds the lock of this machine"
    current=$(readlink current || :) # under the lock, only claim changes it
}

# What was decided must survive a loss of power: the answer is believed.
persist() { sync "$@" 2>/dev/null || sync; }

content() { # FILE; of one line
    IFS= read -r line <"$1" || :
    printf '%s\n' "$line"
}

known() { # TOKEN; prints the id that it made here
    for dir in claims/*."$1".*; do
        id=${dir#claims/}
        if [ -e "$dir/ended" ] || [ "$current" = "$id" ]; then
            echo "$id"
            return
        fi
    done
}

stands() { # ID; a claim that was prepared and not linked never was one
    [ -n "$1" ] && [ -e "claims/$1/claim" ] && { [ -e "claims/$1/ended" ] || [ "$current" = "$1" ]; }
}

progress() { # claims/ID/KIND
    if [ ! -e "$1.lock" ]; then
        echo none
    elif ! flock -n -s "$1.lock" true; then
        echo running
    elif [ -e "$1.exit" ]; then
        content "$1.exit"
    else
        echo died
    fi
}

phase() { # ID
    if [ "$current" != "$1" ]; then
        echo gone
    elif [ -e "claims/$1/ended" ]; then
        echo ending
    else
        echo standing
    fi
}

tell() { # ID
    printf 'claim ' && content "claims/$1/claim"
    printf 'phase ' && phase "$1"
    [ ! -e "claims/$1/ended" ] || { printf 'ended ' && content "claims/$1/ended"; }
    for kind in boot wipe; do
        printf '%s ' "$kind" && progress "claims/$1/$kind"
        [ ! -s "claims/$1/$kind.log" ] || tail -n 3 "claims/$1/$kind.log" | tail -c 500 | sed "s/^/log $kind: /"
    done
}

# A driver in trouble may hang so that nothing ends it. So the probe runs aside,
# and whoever waits for it gives up in time.
probe() { # COMMAND SECONDS ID; keeps what it found with the claim, if there is one
    out=probe.$$
    exec 7>"$out.lock"
    flock 7
    (
        timeout -k 2 "$2" /bin/sh -c "$1" >"$out" 2>&1 </dev/null 7>&- 9>&-
        echo "$?" >"$out.exit"
    ) >/dev/null 2>&1 9>&- &
    exec 7>&-
    if flock -w "$(($2 + 5))" "$out.lock" true; then
        { printf 'probe ' && content "$out.exit" && head -c 65536 "$out" | sed 's/^/gpu /' && echo; } >"$out.said"
    else
        echo "probe hung" >"$out.said"
    fi
    cat "$out.said"
    [ -z "$3" ] || mv -f "$out.said" "claims/$3/probe"
    rm -f "$out" "$out.lock" "$out.exit" "$out.said"
}

prune() { # what nobody may ask for any more
    for dir in claims/*; do
        id=${dir#claims/}
        if [ "$current" = "$id" ] || [ ! -d "$dir" ]; then
            continue
        fi
        if [ ! -e "$dir/ended" ] || [ -n "$(find "$dir/ended" -mtime +1)" ]; then
            rm -rf "$dir"
        fi
    done
    find passed -type f -mtime +1 -exec rm -f {} +
    find files -type f -mtime +30 -exec rm -f {} +
    find . -name 'probe.*' -mtime +1 -exec rm -f {} +
}

pass() { # TOKEN
    if [ ! -e "passed/$1" ]; then
        : >"passed/$1" && persist "passed/$1" passed || fail "cannot write to the state folder"
    fi
    echo "state passed"
}

# The process that runs the commands of a kind, in a session of its own. It
# inherits its lock, so there is no instant at which it runs and does not hold it;
# the commands do not, so that a daemon they start does not hold it for ever.
runner='
dir=$1 kind=$2 code=0
shift 2
echo $$ >"$dir/$kind.pid"
cd || exit 1
for command; do
    /bin/sh -c "$command" 8>&- || { code=$?; break; }
done
if [ "$kind$code" = wipe0 ]; then
    cd "$FOREWARM_ROOT" && exec 9>>lock && flock -x 9 || exit 1
    [ "$(readlink current)" != "${dir##*/}" ] || rm -f current || exit 1
fi
echo "$code" >"$dir/$kind.exit.new" && mv -f "$dir/$kind.exit.new" "$dir/$kind.exit"
'

start() { # ID KIND COMMAND...
    dir=$PWD/claims/$1 kind=$2
    shift 2
    exec 8>>"$dir/$kind.lock"
    if flock -n 8; then
        rm -f "$dir/$kind.exit"
        FOREWARM_ROOT=$PWD FOREWARM_CLAIM=$dir setsid /bin/sh -c "$runner" "forewarm-$kind" "$dir" "$kind" "$@" \
            >"$dir/$kind.log" 2>&1 </dev/null 9>&- &
    fi
    exec 8>&-
}

# A setup that still runs would undo what the wipe does.
stop_boot='
cd "$FOREWARM_CLAIM" || exit 1
[ -e boot.lock ] || exit 0
for signal in TERM KILL; do
    flock -n boot.lock true && exit 0
    [ ! -e boot.pid ] || kill -s "$signal" -- "-$(cat boot.pid)" 2>/dev/null
    flock -w 10 boot.lock true && exit 0
done
echo "the setup cannot be ended"
exit 1
'

# Ends what users left on the GPUs. Services of the driver run as users of their
# own and stay.
clear_gpus='
users() {
    for process in /proc/[0-9]*; do
        [ "$(stat -c %u "$process" 2>/dev/null || echo 0)" != 0 ] || continue
        case $(cat "$process/comm" 2>/dev/null) in
        nvidia-persiste* | nv-hostengine | dcgm* | nv-fabricmanage*) continue ;;
        esac
        ls -l "$process/fd" 2>/dev/null | grep -q -F -- "-> ${FOREWARM_DEVICES:-/dev/nvidia}" || continue
        echo "${process#/proc/}"
    done
}
for signal in TERM TERM KILL KILL; do
    found=$(users)
    [ -n "$found" ] || exit 0
    kill -s "$signal" $found 2>/dev/null
    sleep 1
done
found=$(users)
[ -z "$found" ] || { echo "these still hold a GPU:" $found; exit 1; }
'

survey() { # TOKEN PROBE SECONDS
    id=$(known "$1")
    if [ -n "$id" ]; then
        echo "state known"
        tell "$id"
    elif [ -e "passed/$1" ] || [ -n "$current" ]; then
        pass "$1"
    else
        echo "state free"
        exec 9>&-
        probe "$2" "$3" ""
    fi
}

claim() { # TOKEN ID CLAIM
    id=$(known "$1")
    if [ -z "$id" ]; then
        if [ -e "passed/$1" ] || [ -n "$current" ]; then
            pass "$1"
            return
        fi
        prune
        id=$2
        mkdir "claims/$id" && printf '%s' "$3" >"claims/$id/claim" && persist "claims/$id/claim" "claims/$id" claims &&
            ln -s "$id" current && persist . || fail "cannot write to the state folder"
        current=$id
    fi
    echo "state known"
    tell "$id"
}

refuse() { # TOKEN
    id=$(known "$1")
    if [ -n "$id" ]; then
        echo "state known"
        tell "$id"
    else
        pass "$1"
    fi
}

boot() { # ID COMMAND...
    if stands "$1" && [ "$(phase "$1")" = standing ] && [ ! -e "claims/$1/boot.exit" ]; then
        id=$1
        shift
        start "$id" boot "$@"
        set -- "$id"
    fi
    look "$1" "" 0
}

look() { # ID PROBE SECONDS; no probe for ""
    if ! stands "$1"; then
        echo "state unknown"
        return
    fi
    echo "state known"
    tell "$1"
    if [ -n "$2" ] && [ "$(phase "$1")" = standing ] && [ "$(progress "claims/$1/boot")" = 0 ]; then
        exec 9>&-
        probe "$2" "$3" "$1"
    fi
}

standing() { # PROBE SECONDS; the claim that has the machine, if any, as it was last seen
    id=$current
    if [ -z "$id" ]; then
        echo "state free"
    elif [ -e "claims/$id/probe" ]; then
        echo "state known"
        tell "$id"
        cat "claims/$id/probe"
    else
        look "$id" "$@"
    fi
}

end() { # ID TIME clear|leave COMMAND...
    if ! stands "$1"; then
        echo "state unknown"
        return
    fi
    id=$1 at=$2 after=$3
    shift 3
    [ "$after" = leave ] || set -- "$@" "$clear_gpus"
    if [ "$(phase "$id")" != gone ]; then
        if [ ! -e "claims/$id/ended" ]; then
            printf '%s' "$at" >"claims/$id/ended.new" && persist "claims/$id/ended.new" &&
                mv "claims/$id/ended.new" "claims/$id/ended" && persist "claims/$id" || fail "cannot write to the state folder"
        fi
        start "$id" wipe "$stop_boot" "$@"
    fi
    echo "state known"
    tell "$id"
}

missing() { # SHA256...
    for sum; do
        [ -e "files/$sum" ] || echo "missing $sum"
    done
}

main() { # VERB STATE ARGUMENT...
    verb=$1 state=$2
    shift 2
    case $verb in
    look | standing | missing) enter "$state" -s ;;
    survey | claim | refuse | boot | end) enter "$state" -x ;;
    *) fail "unknown verb $verb" ;;
    esac
    echo "forewarm 1"
    "$verb" "$@"
    echo "end"
}
