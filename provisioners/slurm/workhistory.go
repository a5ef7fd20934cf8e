package slurm

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// historyFields are asked of sacct, of everybody's jobs: as with workColumns, nothing that
// a user writes for people is among them.
var historyFields = []string{"JobIDRaw", "JobID", "State", "User", "Account", "Partition", "Submit", "Eligible",
	"Start", "End", "NodeList", "NNodes", "AllocTRES", "ReqTRES"}

// ownFields are asked of sacct, of our own user's jobs alone.
var ownFields = []string{"JobIDRaw", "Submit", "JobName"}

// accountedWork are the jobs that ended within a span, as sacct knows them. GPUs are in
// it where AccountingStorageTRES has them. Jobs of ours are left out.
func (c commands) accountedWork(ctx context.Context, user string, from, until time.Duration) (queueView, error) {
	var q queueView
	seen := c.newRows(len(historyFields), func(fields []string) error {
		state, _, _ := strings.Cut(fields[2], " ") // "CANCELLED by 1000"
		if !phaseIsOver(state) {
			return nil // squeue has it
		}
		r, err := parseWorkRow(squeueRow(fields, state))
		if err == nil && r.matters() {
			q.rows = append(q.rows, r)
		}
		return err
	})
	args := append(spanArgs(from, until), seen.sacctArgs(historyFields)...)
	if err := c.readRows(ctx, seen, "sacct", append([]string{"--allusers"}, args...)...); err != nil {
		return queueView{}, fmt.Errorf("reading the history of jobs: %w", err)
	}
	if !seen.isWhole() {
		return queueView{}, provisioners.Errorf(provisioners.KindTransient, "sacct's history is cut")
	}
	q.noteStrange(seen, "sacct")
	own, err := c.accountedOwn(ctx, user, from, until)
	if err != nil {
		return queueView{}, err
	}
	theirs := q.rows[:0]
	for _, r := range q.rows {
		if !own[ownKey(r.job, strconv.FormatInt(r.work.SubmittedAt.Unix(), 10))] {
			theirs = append(theirs, r)
		}
	}
	q.rows = theirs
	return q, nil
}

// accountedOwn are the jobs of our user that have a name of ours. Only our user gave
// them: a name alone is anybody's to choose.
func (c commands) accountedOwn(ctx context.Context, user string, from, until time.Duration) (map[string]bool, error) {
	own := map[string]bool{}
	seen := c.newRows(len(ownFields), func(fields []string) error {
		if isOwnName(fields[2]) {
			own[ownKey(fields[0], fields[1])] = true
		}
		return nil
	})
	args := append(spanArgs(from, until), seen.sacctArgs(ownFields)...)
	if err := c.readRows(ctx, seen, "sacct", append([]string{"--user=" + user}, args...)...); err != nil {
		return nil, fmt.Errorf("reading the history of our own jobs: %w", err)
	}
	if !seen.isWhole() {
		return nil, provisioners.Errorf(provisioners.KindTransient, "sacct's history of our own jobs is cut")
	}
	return own, nil
}

// ownKey tells runs of jobs apart: a job that is queued again keeps its number.
func ownKey(job, submitted string) string { return job + "@" + submitted }

// isOwnName reports whether a job of our user is a heartbeat or a placeholder.
func isOwnName(name string) bool { return beatName.MatchString(name) || namePattern.MatchString(name) }

// spanArgs say to sacct from how long ago until how long ago; 0 is now.
func spanArgs(from, until time.Duration) []string {
	args := []string{"--starttime=" + agoText(from)}
	if until > 0 {
		args = append(args, "--endtime="+agoText(until))
	}
	return args
}

func agoText(d time.Duration) string { return "now-" + strconv.Itoa(int(d.Seconds())+1) + "seconds" }

// squeueRow is a row of sacct in the order of workColumns.
func squeueRow(f []string, state string) []string {
	tres := f[12]
	if trackedGPUs(tres) == 0 {
		tres = f[13]
	}
	return []string{f[0], f[1], state, "", f[3], f[4], f[5], f[6], f[7], f[8], f[9], f[10], f[11], "1", tres, "", "", "",
		"", ""}
}

// askUser asks as whom Slurm's commands run.
func (c commands) askUser(ctx context.Context) (string, error) {
	asked := c.runner
	asked.bin = ""
	name, err := runPlain(ctx, asked, "id", "-un")
	if name = strings.TrimSpace(name); err == nil && name == "" {
		err = errors.New("id does not say who we are")
	}
	return name, err
}

// accountedBeats are the token's ended heartbeats, the oldest first.
func (c commands) accountedBeats(ctx context.Context, mark string) ([]ended, error) {
	var beats []ended
	seen := c.newRows(len(sacctFields), func(fields []string) error {
		name := beatName.FindStringSubmatch(fields[4])
		if name == nil || name[1] != mark {
			return nil
		}
		j, err := parseEnded(fields, mark)
		if err == nil && !j.end.IsZero() {
			beats = append(beats, j)
		}
		return err
	})
	err := c.readRows(ctx, seen, "sacct", append([]string{
		"--starttime=now-" + strconv.Itoa(int(tokenMemory.Hours())) + "hours",
		"--name=forewarm-" + mark + "-" + string(bootBeat) + ",forewarm-" + mark + "-" + string(aheadBeat),
	}, seen.sacctArgs(sacctFields)...)...)
	if err != nil {
		return nil, err
	}
	if !seen.isWhole() || seen.first != nil {
		return nil, &provisioners.Error{Kind: provisioners.KindTransient, Message: "reading sacct's heartbeats",
			Err: seen.first}
	}
	return beats, nil
}
