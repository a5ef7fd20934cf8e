#!/bin/sh
# Runs once a minute on a machine that Forewarm made. It reports the GPUs on the
# console, where the control plane reads them, and powers the machine off when
# its time is over and nobody uses it. It needs no credentials.
set -u
export LC_ALL=C
state=${FOREWARM_STATE:-/var/lib/forewarm}
console=${FOREWARM_CONSOLE:-/dev/console}
unclaimed=${FOREWARM_UNCLAIMED_S:-3600}
imds=http://169.254.169.254/latest
mkdir -p "$state" || exit 1
[ -s "$state/born" ] || date +%s >"$state/born"

# next counts in a file and prints the count.
next() {
	n=$(($(cat "$1" 2>/dev/null || echo 0) + 1))
	echo "$n" >"$1"
	echo "$n"
}

json() {
	awk -F', *' '
	function text(s) { gsub(/[^ -~]|["\\]/, "", s); return "\"" s "\"" }
	function whole(s) { return s ~ /^[0-9]+$/ ? s : "null" }
	{
		out = out (NR > 1 ? "," : "") "{\"uuid\":" text($1) ",\"index\":" whole($2) ",\"name\":" text($3) \
			",\"memory_mib\":" whole($4) ",\"ecc\":" whole($5) "}"
	}
	END { print "{\"v\":1,\"gpus\":[" out "]}" }'
}

# A GPU that is lost has no row of its own any more, and makes nvidia-smi fail:
# the rows that are there count, not the exit status.
report() {
	gpus=$(timeout 20 nvidia-smi --format=csv,noheader,nounits \
		--query-gpu=uuid,index,name,memory.total,ecc.errors.uncorrected.volatile.total 2>/dev/null | grep '^GPU-')
	[ -n "$gpus" ] || return 0
	line="forewarm-gpus $(printf '%s\n' "$gpus" | json | base64 | tr -d '\n')"
	runs=$(next "$state/runs")
	# Repeated, because the console forgets and the kernel writes across it.
	if [ "$line" != "$(cat "$state/line" 2>/dev/null)" ] || [ "$runs" -le 10 ] || [ $((runs % 10)) -eq 0 ]; then
		printf '\n%s\n' "$line" >>"$console"
	fi
	printf '%s' "$line" >"$state/line"
}

# tag prints the status of the answer about the tag, which it leaves in a file.
tag() {
	session=$(curl -s -f -m 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$imds/api/token") || return 1
	curl -s -m 5 -o "$state/answer" -w '%{http_code}' -H "X-aws-ec2-metadata-token: $session" \
		"$imds/meta-data/tags/instance/forewarm:expires-at"
}

# learn keeps the last end that was read: a tag that cannot be read now changes
# nothing.
learn() {
	status=$(tag) || status=
	[ "$status" = 200 ] || return 0
	answer=$(cat "$state/answer")
	case $answer in
	never | [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z)
		printf '%s' "$answer" >"$state/expires"
		;;
	esac
}

# due also holds for a machine whose tag was never set: its maker died between
# making it and saying for how long. That it is missing must be said, not guessed.
due() {
	expires=$(cat "$state/expires" 2>/dev/null)
	case $expires in
	never) return 1 ;;
	'') [ "$status" = 404 ] && [ $(($(date +%s) - $(cat "$state/born"))) -ge "$unclaimed" ] ;;
	*) [ "$(date -u +%Y%m%d%H%M%S)" -ge "$(printf '%s' "$expires" | tr -cd 0-9)" ] ;;
	esac
}

# busy is also a machine that cannot say so, for an hour.
busy() {
	if apps=$(timeout 20 nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null); then
		rm -f "$state/blind"
		[ -n "$apps" ]
		return
	fi
	[ "$(next "$state/blind")" -lt 60 ]
}

report
learn
if due && ! busy; then
	echo "forewarm: the time of this machine is over" >>"$console"
	poweroff
fi
