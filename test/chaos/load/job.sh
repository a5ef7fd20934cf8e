# What a job runs: it writes down that it is there, in the file of runs and beside the visitors of its GPUs, and ends as
# its manner says. Arguments: its manner, the file of runs, the file of visitors, and its organization. A line of a run
# is a time, what happened, the job, its attempt, the exit code, and its node's rank.
set -u
manner=$1 runs=$2 visits=$3 tenant=$4

run() { printf '%s %s %s %s %s %s\n' "$EPOCHREALTIME" "$1" "$FOREWARM_JOB_ID" "$FOREWARM_JOB_ATTEMPT" "$2" "$NODE_RANK" >>"$runs"; }
# meet waits until all ranks of the attempt are there: what a gang is for works with all of them alone.
meet() {
	for ((n = 0; n < 160; n++)); do
		(($(grep -c " begins $FOREWARM_JOB_ID $FOREWARM_JOB_ATTEMPT - " "$runs") < NNODES)) || return 0
		sleep 0.25
	done
	return 5
}
use() {
	printf '%s %s %s %s %s %s -\n' "$EPOCHREALTIME" "$1" "$FOREWARM_JOB_ID" "$FOREWARM_ALLOCATION" "$tenant" \
		"$CUDA_VISIBLE_DEVICES" >>"$visits"
}

run begins -
use works
code=0
case $manner in
sleep) for ((n = 0; n < 6; n++)); do use works; sleep 0.25; done ;;
long) for ((n = 0; n < 24; n++)); do use works; sleep 0.25; done ;;
meet)
	meet || code=$?
	for ((n = 0; n < 4; n++)); do use works; sleep 0.25; done ;;
print) for ((n = 1; n <= 2000; n++)); do
	printf '%s %d line %d\n' "$FOREWARM_JOB_ID" "$FOREWARM_JOB_ATTEMPT" "$n"
	((n % 200)) || sleep 0.1
done ;;
flaky) ((FOREWARM_JOB_ATTEMPT > 1)) || code=3 ;;
fail) code=4 ;;
esac
use works
run ends "$code"
exit "$code"
