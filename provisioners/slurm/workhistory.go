package slurm

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// historyFields are asked of sacct. The name is last: it may have a line break.
var historyFields = []string{"JobIDRaw", "JobID", "State", "User", "Account", "Partition", "Submit", "Eligible",
	"Start", "End", "NodeList", "NNodes", "AllocTRES", "ReqTRES", "JobName"}

// accountedWork are the jobs that ended within the time, as sacct knows them. GPUs are in
// it where AccountingStorageTRES has them.
func (c commands) accountedWork(ctx context.Context, within time.Duration) (rows []workRow, whole bool, err error) {
	output, err := c.askSlurm(ctx, provisioners.KindTransient, "", "sacct", "--allusers", "--noheader", "--parsable2",
		"--allocations", "--duplicates", "--delimiter="+separator,
		"--starttime=now-"+strconv.Itoa(int(within.Seconds())+1)+"seconds",
		"--format="+strings.Join(historyFields, ","))
	if err != nil {
		return nil, false, fmt.Errorf("reading the history of jobs: %w", err)
	}
	whole = output == "" || strings.HasSuffix(output, "\n")
	for line := range strings.Lines(output) {
		fields := strings.Split(strings.TrimRight(line, "\n"), separator)
		if len(fields) != len(historyFields) {
			continue // the rest of a name with a line break
		}
		state, _, _ := strings.Cut(fields[2], " ") // "CANCELLED by 1000"
		if !phaseIsOver(state) {
			continue // squeue has it
		}
		r, err := parseWorkRow(squeueRow(fields, state))
		if err != nil {
			whole = false
			continue
		}
		rows = append(rows, r)
	}
	return rows, whole, nil
}

// squeueRow is a row of sacct in the order of workColumns.
func squeueRow(f []string, state string) []string {
	tres := f[12]
	if trackedGPUs(tres) == 0 {
		tres = f[13]
	}
	return []string{f[0], f[1], state, "", f[3], f[4], f[5], f[6], f[7], f[8], f[9], f[10], f[11], "1", tres, "", "", "",
		"", "", f[14]}
}

// accountedBeats are the token's ended heartbeats, the oldest first.
func (c commands) accountedBeats(ctx context.Context, mark string) ([]ended, error) {
	output, err := c.askSlurm(ctx, provisioners.KindTransient, "", "sacct", "--noheader", "--parsable2", "--allocations",
		"--duplicates", "--delimiter="+separator, "--starttime=now-"+strconv.Itoa(int(tokenMemory.Hours()))+"hours",
		"--name=forewarm-"+mark+"-"+string(bootBeat)+",forewarm-"+mark+"-"+string(aheadBeat),
		"--format="+strings.Join(sacctFields, ","))
	if err != nil {
		return nil, err
	}
	jobs, err := parseAccounting(output, beatName)
	if err != nil {
		return nil, &provisioners.Error{Kind: provisioners.KindTransient, Message: "reading sacct", Err: err}
	}
	var rows []ended
	for _, j := range jobs {
		if j.mark == mark && !j.end.IsZero() {
			rows = append(rows, j)
		}
	}
	return rows, nil
}
