//go:build clouds

package kubernetes

// holdScript is what a placeholder runs: it holds the GPUs until its time is
// over. The kubelet rewrites the file when the pod's annotation changes, so the
// end can be moved while it runs; nobody has to be alive for it to come. Without
// a time it holds until it is told to stop. As process 1 it must say that TERM
// ends it.
//
// $1 is the file with the time.
const holdScript = `trap 'exit 143' TERM INT
while :; do
  until=$(cat "$1" 2>/dev/null) || until=
  case $until in
  '' | *[!0-9]*) ;;
  *) [ "$(date +%s)" -lt "$until" ] || exit 0 ;;
  esac
  sleep 5 & wait $!
done
`

// probeScript says the GPUs once, for the adapter to read from the log. It says
// nothing where the driver says nothing.
const probeScript = `gpus=$(nvidia-smi --query-gpu=index,uuid,memory.total,ecc.errors.uncorrected.volatile.total ` +
	`--format=csv,noheader,nounits | base64 | tr -d '\n') &&
  [ -n "$gpus" ] && echo "` + probeMark + `$gpus"
`

const probeMark = "forewarm-gpus "

const (
	holdContainer = "hold"

	timeVolume = "forewarm"
	timeFolder = "/etc/forewarm"
	timeFile   = "expires-at"
)

func (c Config) holdCommand() []string {
	script := holdScript
	if c.Probe == ProbeLogs {
		script = probeScript + holdScript
	}
	return []string{"sh", "-c", script, "forewarm", timeFolder + "/" + timeFile}
}
