package slurm

import (
	"context"
	"fmt"
	"slices"
)

// queueView is what was seen of everybody's jobs.
type queueView struct {
	rows []workRow
	cut  bool     // there are more, which the next look may see
	gaps []string // why work may be missing
}

func (q *queueView) note(gap string) { q.gaps = append(q.gaps, gap) }

// noteStrange says that rows of a listing were not understood. No later look would
// understand them either.
func (q *queueView) noteStrange(seen *rows, from string) {
	if seen.strange > 0 {
		q.note(fmt.Sprintf("%d of %s's jobs are not understood: %v", seen.strange, from, seen.first))
	}
}

// listQueue lists everybody's jobs by their ends, the last first, and those that have none
// after all others: they wait, and are what is missing when there are more than can be
// read. The waiting tasks of an array are one row.
func (c commands) listQueue(ctx context.Context) (queueView, error) {
	var q queueView
	seen := c.newRows(len(workColumns), func(row []string) error {
		r, err := parseWorkRow(row)
		if err == nil && r.matters() {
			q.rows = append(q.rows, r)
		}
		return err
	})
	err := c.readRows(ctx, seen, "squeue", "--all", "--noheader", "--states=all", "--sort=-e",
		"--Format="+seen.formatCells(workColumns))
	if err != nil {
		return queueView{}, fmt.Errorf("listing jobs: %w", err)
	}
	q.noteStrange(seen, "squeue")
	switch {
	case seen.full:
		q.note(fmt.Sprintf("squeue lists more than %d jobs, and the others were not read", seen.count))
	case !seen.isWhole():
		q.cut = true
		q.note("squeue's list of jobs is cut")
	}
	return q, nil
}

// markOwn marks the jobs that are ours, and what may be where not all of ours were seen. A
// job of our user that squeue did not show to us any more was forgotten just now, and an
// earlier look has told of it if it was work.
func (q *queueView) markOwn(beats beatView) {
	q.rows = slices.DeleteFunc(q.rows, func(r workRow) bool {
		return beats.user != "" && r.work.User == beats.user && phaseIsOver(r.state) && !beats.jobs[r.job]
	})
	for i := range q.rows {
		r := &q.rows[i]
		unseen := !beats.whole && r.work.User == beats.user && !beats.jobs[r.job]
		r.own = beats.own[r.job] || unseen
	}
}
