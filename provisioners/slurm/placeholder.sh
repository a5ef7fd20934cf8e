#!/bin/sh
# A placeholder of Forewarm: it holds GPUs of this node until it is cancelled, or
# until the time in its name has come and no step runs beside it.
# SETTINGS
PATH=${bin_dir:+$bin_dir:}${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
job=$SLURM_JOB_ID

# expiry prints when to end, in seconds since 1970, 0 for never. It fails when
# the controller does not answer: then nothing may be concluded.
expiry() {
	name=$(squeue --noheader --jobs="$job" --format=%j) || return 1
	case $name in
	forewarm-*-x*) echo "${name##*-x}" ;;
	forewarm-*) echo 0 ;;
	*) return 1 ;;
	esac
}

expired() {
	end=$(expiry) && [ "$end" -gt 0 ] && [ "$(date +%s)" -ge "$end" ]
}

# busy succeeds while somebody's step runs here, and when that cannot be known.
busy() {
	steps=$(squeue --noheader --steps --jobs="$job" --format=%i) || return 0
	for step in $steps; do
		case $step in
		*.batch | *.extern) ;;
		*) return 0 ;;
		esac
	done
	return 1
}

# rows turns the probe's answer into what the comment holds. Where no cgroup
# hides the other GPUs of the node, the job's own are picked by their index.
rows() {
	awk -F ' *, *' -v want="$gpus" -v held=",${SLURM_JOB_GPUS:-}," '
		function number(text) { return text ~ /^[0-9]+$/ ? text : 0 }
		function word(text) { gsub(/[^A-Za-z0-9._ -]/, "", text); gsub(/ +/, "+", text); return text }
		{ sub(/^[ \t]+/, ""); sub(/[ \t\r]+$/, "") }
		NF == 0 { next }
		NF < 5 || $1 !~ /^[0-9]+$/ || $2 !~ /^GPU-[A-Za-z0-9-]+$/ { bad = 1; exit }
		{ n++; at[n] = $1; row[n] = $1 ":" substr($2, 5) ":" number($3) ":" number($4); name[n] = word($5) }
		END {
			if (bad) exit 1
			for (i = 1; i <= n; i++) {
				if (n > want && !index(held, "," at[i] ",")) continue
				list = list (count++ ? "," : "") row[i]
				model = count == 1 || model == name[i] ? name[i] : "mixed"
			}
			if (count != want) exit 1
			print "&g=" list "&m=" model
		}'
}

# unprobed reports the GPUs by their indexes alone.
unprobed() {
	indexes=${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-}}
	case $indexes in '' | *[!0-9,]*) return 1 ;; esac
	[ "$(echo "$indexes" | tr ',' '\n' | grep -c .)" -eq "$gpus" ] || return 1
	echo "&u=$indexes"
}

publish() {
	scontrol update JobId="$job" Comment="$comment$1"
}

prove() {
	if [ "$allow_unprobed" = true ] && ! command -v "$probe_program" >/dev/null; then
		found=$(unprobed)
	else
		found=$(probe | rows)
	fi && [ -n "$found" ] && publish "$found"
}

# keep_daemon keeps the node's daemon running, until the control plane does not believe it any
# more. What it knows goes with the job, whose cancellation reaches this shell as well as the daemon.
keep_daemon() {
	cancelled=
	trap 'cancelled=yes' TERM
	folder=$(mktemp -d "${TMPDIR:-/tmp}/forewarm-node-XXXXXX") || return
	[ "$(id -u)" -ne 0 ] || chmod 0711 "$folder" # the holders' users pass it on the way to their own
	while [ -z "$cancelled" ]; do
		printf '%s' "$join_token" | daemon
		case $? in 0 | 2 | 4) break ;; esac
		[ -n "$cancelled" ] || sleep 5
	done
	rm -rf "$folder"
}

expired && exit 0
deadline=$(($(date +%s) + probe_timeout))
until prove; do
	if [ "$(date +%s)" -ge "$deadline" ]; then
		echo "the probe did not pass within $probe_timeout s" >&2
		exit 1
	fi
	sleep 2
done

[ -z "$join_token" ] || keep_daemon &

while :; do
	if ! end=$(expiry); then
		sleep "$check_every"
		continue
	fi
	left=$((end - $(date +%s)))
	if [ "$end" -eq 0 ]; then
		sleep 3600
	elif [ "$left" -gt 0 ]; then
		sleep "$left"
	elif busy; then
		sleep "$check_every"
	else
		exit 0
	fi
done
