package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/test/chaos/load"
)

// Jobs is what is known of jobs at the end: what was acknowledged, what people are told, and what the jobs
// themselves wrote down.
type Jobs struct {
	Entries []load.Entry
	Told    map[string]contract.Job // all that there are, by id
	Output  map[string]string       // of the last attempt of those that print and have completed
	Runs    []Run
	Events  []ledger.Event
}

// JobFaults is what is wrong with jobs.
type JobFaults struct {
	Over      int      // acknowledged, and ended once
	Attempts  int      // that began to run
	Gangs     int      // of Over, those that completed on several nodes
	Cancelled int      // of Over
	Requeued  int      // requests to requeue a job that were acknowledged
	Preempted int      // times that a job left for another
	Lost      []string // acknowledged, and not there, not over, or not ended as they must
	RunTwice  []string // begun again after a success, or one attempt twice
	Torn      []string // whose output is not what they wrote
	Split     []string // attempts of gangs that completed without all of their ranks together
	Left      []string // preempted, and not allowed to be, or not come back
	Misplaced []string // more than were asked for, endings too many, or begun before their turn
	// Blind says why what was not found does not count: nothing ended, or nothing ran.
	Blind []string
}

// Judge compares what is known of jobs.
func (j Jobs) Judge() JobFaults {
	f := JobFaults{RunTwice: j.runTwice(), Split: j.split(), Left: j.left(),
		Misplaced: slices.Concat(j.unasked(), j.beforeTurn())}
	cancelled, endings, runs := j.cancelled(), j.countEndings(), byJob(j.Runs)
	for _, e := range j.Entries {
		if e.Op == load.RequeueJob {
			f.Requeued++
		}
		if e.Op != load.Submit {
			continue
		}
		told, there := j.Told[e.ID]
		what := contradictEnd(e, told, there, cancelled[e.ID], runs[e.ID])
		switch {
		case what != "":
			f.Lost = append(f.Lost, fmt.Sprintf("job %s (%s, %s), acknowledged at %s, %s", e.ID, e.Name, e.Manner,
				e.At.Format(stamp), what))
		case endings[e.ID] != 1:
			f.Misplaced = append(f.Misplaced, fmt.Sprintf("job %s ended %d times", e.ID, endings[e.ID]))
		default:
			f.countOver(told)
		}
		if what := j.tornOf(e, told); what != "" {
			f.Torn = append(f.Torn, what)
		}
	}
	f.Attempts = len(attemptsOf(j.Runs))
	if f.Over == 0 || f.Attempts == 0 {
		f.Blind = append(f.Blind, fmt.Sprintf("%d jobs ended and %d attempts ran: nothing was measured", f.Over, f.Attempts))
	}
	return f
}

// countOver counts a job that ended as it must.
func (f *JobFaults) countOver(told contract.Job) {
	f.Over++
	f.Preempted += told.Preemptions
	switch {
	case told.State == contract.JobCancelled:
		f.Cancelled++
	case told.State == contract.JobCompleted && told.Nodes > 1:
		f.Gangs++
	}
}

// contradictEnd says what speaks against how a job ended, nothing when it did as it must.
func contradictEnd(e load.Entry, told contract.Job, there, cancelled bool, runs []Run) string {
	want := contract.JobCompleted
	switch {
	case cancelled && told.State != contract.JobCompleted: // it may have been quicker than its cancellation
		want = contract.JobCancelled
	case e.Manner == load.Fails:
		want = contract.JobFailed
	}
	switch {
	case !there:
		return "is not there"
	case !client.IsJobOver(told.State):
		return "is " + told.State
	case told.OrganizationID != e.Organization || told.Name != e.Name:
		return fmt.Sprintf("is %q of %s", told.Name, told.OrganizationID)
	case told.State != want:
		return fmt.Sprintf("is %s (%s: %s) after %d attempts, and must be %s", told.State, told.Reason, told.Detail,
			told.Attempt, want)
	case told.State == contract.JobCancelled:
		return ""
	}
	for _, r := range runs { // what it is said to have done, it must have done
		if r.Ends && r.Attempt == told.Attempt && told.ExitCode != nil && r.ExitCode == *told.ExitCode {
			return ""
		}
	}
	return fmt.Sprintf("is said to have %s in attempt %d, and did not", told.State, told.Attempt)
}

func (j Jobs) cancelled() map[string]bool {
	all := map[string]bool{}
	for _, e := range j.Entries {
		if e.Op == load.CancelJob {
			all[e.ID] = true
		}
	}
	return all
}

// countEndings counts the endings that the ledger's journal tells of, by job.
func (j Jobs) countEndings() map[string]int {
	n := map[string]int{}
	for _, e := range j.Events {
		if state, ok := strings.CutPrefix(e.Type, "job."); ok && client.IsJobOver(state) {
			n[e.Subject]++
		}
	}
	return n
}

func byJob(runs []Run) map[string][]Run {
	all := map[string][]Run{}
	for _, r := range runs {
		all[r.JobID] = append(all[r.JobID], r)
	}
	return all
}

// unasked are jobs of one request beyond those that it asked for.
func (j Jobs) unasked() (found []string) {
	asked, there := map[string]int{}, map[string]int{}
	for _, e := range j.Entries {
		if e.Op == load.Submit {
			asked[e.Organization+" "+e.Name]++
		}
	}
	for _, told := range j.Told {
		there[told.OrganizationID+" "+told.Name]++
	}
	for name, n := range there {
		if want := asked[name]; want > 0 && n > want { // one that was never answered may be there
			found = append(found, fmt.Sprintf("the request %s asked for %d jobs and made %d", name, want, n))
		}
	}
	slices.Sort(found)
	return found
}

// beforeTurn are jobs that began before the one that they wait for was over.
func (j Jobs) beforeTurn() (found []string) {
	runs := byJob(j.Runs)
	for _, e := range j.Entries {
		own, others := runs[e.ID], runs[e.After]
		if e.Op != load.Submit || e.After == "" || len(own) == 0 || len(others) == 0 {
			continue
		}
		if first, last := own[0].At, others[len(others)-1].At; first.Before(last) {
			found = append(found, fmt.Sprintf("job %s began at %s, and %s, for which it waits, was there at %s", e.ID,
				first.Format(stamp), e.After, last.Format(stamp)))
		}
	}
	return found
}

// tornOf says how the output of a job that prints differs from what it wrote.
func (j Jobs) tornOf(e load.Entry, told contract.Job) string {
	if e.Manner != load.Prints || told.State != contract.JobCompleted {
		return ""
	}
	want, got := outputOf(told), j.Output[e.ID]
	if got == want {
		return ""
	}
	same := 0
	for same < min(len(want), len(got)) && want[same] == got[same] {
		same++
	}
	return fmt.Sprintf("of job %s, which wrote %d bytes, %d are kept, and they differ from byte %d on", e.ID, len(want),
		len(got), same)
}

func outputOf(told contract.Job) string {
	var all strings.Builder
	for n := range load.PrintedLines {
		fmt.Fprintf(&all, "%s %d line %d\n", told.ID, told.Attempt, n+1)
	}
	return all.String()
}
