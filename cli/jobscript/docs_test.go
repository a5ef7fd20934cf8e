package jobscript_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/jobscript"
)

// ofSlurm are the flags of sbatch in Slurm 22.05, but for those that only print something.
const ofSlurm = `
account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint container
contiguous core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency
distribution error exclude exclusive export export-file extra-node-info get-user-env gid gpu-bind gpu-freq
gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint hold ignore-pbs input job-name
kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus
network nice no-kill no-requeue nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node
ntasks-per-socket open-mode output overcommit oversubscribe parsable partition power prefer priority profile
propagate qos quiet reboot requeue reservation signal sockets-per-node spread-job switches test-only
thread-spec threads-per-core time time-min tmp uid use-min-nodes verbose wait wait-all-nodes wckey wrap`

var (
	tableRow = regexp.MustCompile("(?m)^\\| (`-.*`) \\| (done|differs|ignored|refused) \\| .*\\|$")
	tableTry = regexp.MustCompile("`(?:-(\\w), )?(--([a-z-]+)(?:=[^`]*)?)`")
)

// The table of the manual says of each flag of Slurm what becomes of it, and that is what becomes of it.
func TestTableOfFlags(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/jobs.md")
	require.NoError(t, err)
	kinds, told := map[string]jobscript.FlagKind{}, map[string]bool{}
	for _, k := range jobscript.Flags() {
		kinds[k.Long] = k
	}
	for _, row := range tableRow.FindAllStringSubmatch(string(text), -1) {
		for _, try := range tableTry.FindAllStringSubmatch(row[1], -1) {
			short, given, long := try[1], try[2], try[3]
			require.False(t, told[long], "%s has two rows", long)
			told[long] = true
			require.Equal(t, kinds[long].Short, short, given)
			s, err := jobscript.Reader{Getenv: environment, Sbatch: true}.Read("#SBATCH " + given + "\ntrue\n")
			requireOutcome(t, row[2], "--"+long, s, err)
			taken := row[2] == "done" || row[2] == "differs"
			require.Equal(t, taken, kinds[long].Usage != "", "--help shows what there is: %s", given)
		}
	}
	for long := range kinds {
		require.True(t, told[long], "%s has no row", long)
	}
	for long := range strings.FieldsSeq(ofSlurm) {
		require.True(t, told[long], "%s of Slurm has no row", long)
	}
	require.Len(t, told, len(kinds))
}

func requireOutcome(t *testing.T, claim, flag string, s jobscript.Script, err error) {
	t.Helper()
	notes := strings.Join(s.Notes, "\n")
	changes := len(s.Flags) > 0 || s.Submission != jobscript.Submission{}
	switch claim {
	case "refused":
		require.ErrorContains(t, err, "line 1: "+flag+": ")
	case "ignored":
		require.NoError(t, err)
		require.False(t, changes, flag)
		require.Contains(t, notes, "left out: "+flag+": ")
	default:
		require.NoError(t, err)
		require.True(t, changes, flag)
	}
}
