package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/access"
)

type column = output.Column[contract.Job]

// ViewAt shows jobs as they are at a time.
func ViewAt(now time.Time) output.View[contract.Job] {
	return output.View[contract.Job]{
		Name: func(x contract.Job) string { return x.ID },
		Columns: []column{
			{Head: "ID", Cell: func(x contract.Job) string { return x.ID }},
			{Head: "NAME", Cell: nameText},
			{Head: "USER", Cell: userText},
			{Head: "STATE", Cell: stateText},
			{Head: "GPUS", Right: true, Cell: func(x contract.Job) string { return strconv.Itoa(x.GPUs) }},
			{Head: "TIME", Right: true, Cell: func(x contract.Job) string { return runtimeText(x, now) }},
			{Head: "WHERE OR WHY", Cell: whereText},
			{Head: "EXIT CODE", Wide: true, Right: true, Cell: exitText},
			{Head: "POOL", Wide: true, Cell: poolText},
			{Head: "SHAPE", Wide: true, Cell: shapeText},
			{Head: "PRIORITY", Wide: true, Cell: func(x contract.Job) string { return x.Priority }},
			{Head: "PREEMPTIBLE", Wide: true, Cell: preemptibleText},
			{Head: "ATTEMPT", Wide: true, Right: true, Cell: func(x contract.Job) string { return strconv.Itoa(x.Attempt) }},
			{Head: "ARRAY", Wide: true, Cell: func(x contract.Job) string { return format.OrDash(x.ArrayID) }},
			{Head: "SUBMITTED", Wide: true, Cell: func(x contract.Job) string { return format.Time(x.SubmittedAt) }},
			{Head: "STARTED", Wide: true, Cell: func(x contract.Job) string { return format.Time(x.StartedAt) }},
			{Head: "ENDED", Wide: true, Cell: func(x contract.Job) string { return format.Time(x.EndedAt) }},
			{Head: "GPU HOURS", Wide: true, Right: true, Cell: func(x contract.Job) string {
				return format.Hours(float64(x.GPUSeconds) / 3600)
			}},
			{Head: "COST", Wide: true, Right: true, Cell: func(x contract.Job) string { return format.Money(x.Cost) }},
			{Head: "SUBMITTED BY", Wide: true,
				Cell: func(x contract.Job) string { return cmp.Or(x.SubmittedByName, x.SubmittedBy) }},
			{Head: "ORGANIZATION", Wide: true,
				Cell: func(x contract.Job) string { return cmp.Or(x.OrganizationName, x.OrganizationID) }},
		},
	}
}

// showViewAt shows one job, with what was asked for.
func showViewAt(now time.Time) output.View[contract.Job] {
	v := ViewAt(now)
	v.Columns = append(slices.Clone(v.Columns),
		column{Head: "ALLOCATION", Cell: func(x contract.Job) string { return format.OrDash(x.AllocationID) }},
		column{Head: "COMMAND", Cell: func(x contract.Job) string { return access.Quote(x.Command) }},
		column{Head: "WORKLOAD", Cell: func(x contract.Job) string { return x.Workload }},
		column{Head: "IMAGE", Cell: imageText},
		column{Head: "DIRECTORY", Cell: func(x contract.Job) string { return format.OrDash(x.Directory) }},
		column{Head: "ENVIRONMENT", Cell: environmentText},
		column{Head: "MAX RUNTIME", Cell: func(x contract.Job) string { return format.Seconds(x.MaxRuntimeSeconds) }},
		column{Head: "GRACE", Cell: func(x contract.Job) string { return format.Seconds(x.GraceSeconds) }},
		column{Head: "CHECKPOINT", Cell: checkpointText},
		column{Head: "RETRIES", Cell: retriesText},
		column{Head: "PREDICTED START", Cell: func(x contract.Job) string { return predictedStart(x, now) }},
		column{Head: "PREDICTED END", Cell: func(x contract.Job) string { return predictedEnd(x, now) }},
		column{Head: "PEAK MEMORY", Cell: peakText},
		column{Head: "NODES WITH", Cell: func(x contract.Job) string { return wordsText(x.Constraints) }},
		column{Head: "PREFERS", Cell: func(x contract.Job) string { return wordsText(x.Prefers) }},
		column{Head: "NEAR", Cell: func(x contract.Job) string { return wordsText(x.Near) }},
		column{Head: "APART FROM", Cell: func(x contract.Job) string { return wordsText(x.ApartFrom) }},
		column{Head: "TOLERATES", Cell: func(x contract.Job) string { return wordsText(x.Tolerations) }},
		column{Head: "STAYS OFF", Cell: func(x contract.Job) string {
			return wordsText(slices.Concat(x.ExcludedNodes, x.AvoidedNodes))
		}},
		column{Head: "AFTER", Cell: dependenciesText},
		column{Head: "RESERVATION", Cell: func(x contract.Job) string { return format.OrDash(x.ReservationID) }},
		column{Head: "NOT BEFORE", Cell: func(x contract.Job) string { return format.Time(x.NotBefore) }})
	return v
}

// queueViewAt shows jobs that wait, in their order.
func queueViewAt(now time.Time) output.View[contract.Job] {
	return output.View[contract.Job]{
		Name: func(x contract.Job) string { return x.ID },
		Columns: []column{
			{Head: "PLACE", Right: true, Cell: placeText},
			{Head: "POOL", Cell: poolText},
			{Head: "ID", Cell: func(x contract.Job) string { return x.ID }},
			{Head: "NAME", Cell: nameText},
			{Head: "USER", Cell: userText},
			{Head: "GPUS", Right: true, Cell: func(x contract.Job) string { return strconv.Itoa(x.GPUs) }},
			{Head: "PRIORITY", Cell: func(x contract.Job) string { return x.Priority }},
			{Head: "WAITS", Right: true, Cell: func(x contract.Job) string { return waitText(x, now) }},
			{Head: "STARTS IN", Cell: func(x contract.Job) string { return bandText(x.PredictedStart, now) }},
			{Head: "WHY", Cell: func(x contract.Job) string { return format.OrDash(reasonText(x)) }},
			{Head: "PREDICTED FROM", Wide: true, Cell: basisText},
			{Head: "MAX RUNTIME", Wide: true,
				Cell: func(x contract.Job) string { return format.Seconds(x.MaxRuntimeSeconds) }},
			{Head: "SHAPE", Wide: true, Cell: shapeText},
			{Head: "SUBMITTED BY", Wide: true,
				Cell: func(x contract.Job) string { return cmp.Or(x.SubmittedByName, x.SubmittedBy) }},
			{Head: "ORGANIZATION", Wide: true,
				Cell: func(x contract.Job) string { return cmp.Or(x.OrganizationName, x.OrganizationID) }},
		},
	}
}

// nameText is what a job is called; one of an array by its index, too.
func nameText(x contract.Job) string {
	if x.ArrayIndex == nil {
		return format.OrDash(x.Name)
	}
	return fmt.Sprintf("%s[%d]", x.Name, *x.ArrayIndex)
}

// userText is who submitted a job, short: what stands before the @ of their address, or the key of nobody.
func userText(x contract.Job) string {
	name, _, _ := strings.Cut(x.UserEmail, "@")
	return cmp.Or(name, x.SubmittedByName, x.SubmittedBy)
}

// placeText is which one a job is of those that wait; "-": it may not start yet, whatever is free.
func placeText(x contract.Job) string {
	if x.Position == 0 {
		return "-"
	}
	return strconv.Itoa(x.Position)
}

func poolText(x contract.Job) string { return cmp.Or(x.PoolName, x.PoolID) }

func shapeText(x contract.Job) string {
	return format.Shape(contract.Shape{GPUs: x.GPUs, Nodes: x.Nodes, GPUsPerNode: x.GPUsPerNode})
}

// waitText is for how long a job has waited of the time in which it could have run.
func waitText(x contract.Job, now time.Time) string {
	if x.EligibleAt.IsZero() || x.EligibleAt.After(now) {
		return "-"
	}
	return lengthText(now.Sub(x.EligibleAt))
}

func lengthText(d time.Duration) string { return format.Duration(max(0, d).Round(time.Second)) }

// runtimeText is for how long the last attempt has run, or ran.
func runtimeText(x contract.Job, now time.Time) string {
	switch {
	case x.StartedAt.IsZero() || x.State == contract.JobPending || x.State == contract.JobScheduled:
		return "-"
	case x.EndedAt.IsZero():
		return lengthText(now.Sub(x.StartedAt))
	}
	return lengthText(x.EndedAt.Sub(x.StartedAt))
}

// whereText is where a job runs, and of one that does not why.
func whereText(x contract.Job) string {
	if text := endingText(x); text != "" {
		return text
	}
	switch x.State {
	case contract.JobScheduled, contract.JobRunning:
		return poolText(x)
	}
	text := reasonText(x)
	if x.Position > 0 {
		text = strings.TrimSuffix(fmt.Sprintf("place %d: %s", x.Position, text), ": ")
	}
	return format.OrDash(text)
}

// reasonText is why a job waits, or how it ended.
func reasonText(x contract.Job) string {
	switch {
	case x.Detail != "":
		return x.Detail
	case x.Reason == "signal" && x.Signal != "":
		return "ended by " + x.Signal
	case x.Reason == "exit" && x.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *x.ExitCode)
	}
	if words, ok := reasons[x.Reason]; ok {
		return words
	}
	return strings.ReplaceAll(x.Reason, "_", " ")
}

// reasons are the codes of reasons, in words.
var reasons = map[string]string{"gpus": "waits for GPUs", "dependency": "depends on another job",
	contract.JobOutOfMemory: "its memory was full", "reservation": "its reservation is over",
	"array_limit": "its array runs no more at once", "nodes": "no node of its pool suits it",
	"silent_daemon": "no daemon would start it", "quota": "its organization has all GPUs that it may",
	"not_before": "is not to start yet",
	"exit":       "", "asked": "", contract.JobTimeLimit: "its time was over",
	contract.JobNotStarted: "it could not be started", "not_served": "no daemon started it",
	"preempted": "left for another job", "node_lost": "a node was lost", "lease_over": "its lease was over"}

// peakText is the most memory that the last attempt had at once on a node.
func peakText(x contract.Job) string {
	if x.PeakMemoryBytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%d MiB", (x.PeakMemoryBytes+1<<20-1)>>20)
}

func wordsText(words []string) string { return format.OrDash(strings.Join(words, " ")) }

func environmentText(x contract.Job) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(x.Environment)) {
		all = append(all, name+"="+x.Environment[name])
	}
	return format.OrDash(access.Quote(all))
}

func checkpointText(x contract.Job) string {
	if x.Checkpoint == nil {
		return "-"
	}
	to := ""
	if x.Checkpoint.LeaderOnly {
		to = " to its first process"
	}
	return fmt.Sprintf("%s%s, %s before the end", x.Checkpoint.Signal, to, format.Seconds(x.Checkpoint.BeforeSeconds))
}

func retriesText(x contract.Job) string {
	return fmt.Sprintf("%d after a failure, %d after a loss", x.Retries.Failed, x.Retries.Lost)
}

func dependenciesText(x contract.Job) string {
	var all []string
	for _, d := range x.Dependencies {
		all = append(all, d.JobID+":"+cmp.Or(d.Condition, "afterok"))
	}
	return format.OrDash(strings.Join(all, " "))
}
