# What a holder of GPUs runs on their node: it looks for what earlier holders of the same GPUs left, leaves marks of its
# own, and writes down all the while that it is there. Arguments: its number, its organization, the file to write to,
# for how many quarters of a second it stays, what the names of marks begin with, and what to leave behind: willing or
# stubborn processes. One line is a time, what happened, the visit, its allocation and organization, its GPUs, and
# what was found or left.
set -u
visit=$1 tenant=$2 log=$3 stay=$4 mark=$5 manner=$6
own=$FOREWARM_ALLOCATION

say() {
	printf '%s %s %s %s %s %s %s\n' "$EPOCHREALTIME" "$1" "$visit" "$own" "$tenant" "$CUDA_VISIBLE_DEVICES" "${2:--}" >>"$log"
}

# tell says of a mark whether it is its own.
tell() {
	case $2 in
	*"$own") say sees "$1:$2" ;;
	*) say finds "$1:$2" ;;
	esac
}

search() {
	local gpu path file words word earlier
	for gpu in ${CUDA_VISIBLE_DEVICES//,/ }; do
		for path in /tmp/"$mark$gpu".* /dev/shm/"$mark$gpu".*; do
			[ -e "$path" ] && tell "file" "$path"
		done
		for file in /proc/[0-9]*/cmdline; do
			words=()
			{ mapfile -d '' words <"$file"; } 2>/dev/null
			for word in "${words[@]}"; do
				case $word in "$mark$gpu".*) tell "process" "$word" ;; esac
			done
		done
		while read -r _ _ _ earlier _; do # others' folders cannot be listed; their names are known
			[ -e "$HOME/../$earlier" ] && tell "folder" "$earlier"
		done < <(grep -F "$gpu" "$log" | grep -F ' begins ' | sort -u -k 4,4)
	done
}

leave() {
	local gpu name
	for gpu in ${CUDA_VISIBLE_DEVICES//,/ }; do
		name=$mark$gpu.$own
		if [ "$FOREWARM_ISOLATION" != environment ]; then # else nobody can tell whose these are
			: >"/tmp/$name" && say leaves "file:/tmp/$name"
			: >"/dev/shm/$name" && say leaves "file:/dev/shm/$name"
		fi
		say leaves "folder:$own"
		setsid bash -c "$linger" bash "$name" "$log" "$manner" "$visit $own $tenant $CUDA_VISIBLE_DEVICES" \
			</dev/null >/dev/null 2>&1 &
		say leaves "process:$name"
	done
}

# A process in the background writes down that it is there, too, and ends by itself in the end, if nobody ends it.
linger='[ "$3" = stubborn ] && trap "" TERM HUP
for ((n = 0; n < 600; n++)); do
	[ -e "$2" ] || exit
	printf "%s lingers %s -\n" "$EPOCHREALTIME" "$4" >>"$2"
	sleep 0.5
done'

say begins
search
leave
for ((n = 0; n < stay; n++)); do
	say works
	sleep 0.25
done
search
say ends
