package source_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/jobs"
)

// A source of job history is stepped until it has nothing new, and committed once all
// that it returned has been handled: after a crash the rest is returned again. Runner
// does that in a loop. Here a CSV file grows between two steps.
func ExampleSource() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "jobs.csv")
	appendTo(file, "job_id,group,submit_ts,duration_s,gpus\n41,vision,1772442000,3600,8\n")

	checkpoint, err := history.OpenCheckpoint(filepath.Join(folder, "checkpoint.json"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var grid source.Source
	grid, err = jobs.New(jobs.Config{Path: file, Name: "grid", Format: jobs.CSV, Checkpoint: checkpoint})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = grid.Close() }()

	printNew(grid)
	appendTo(file, "42,vision,1772445600,1800,4\n")
	printNew(grid)
	printNew(grid)
	// Output:
	// vision asked for 8 GPUs at 09:00 and ran for 1h0m0s
	// vision asked for 4 GPUs at 10:00 and ran for 30m0s
	// nothing new
}

// printNew prints the records of one step, and commits them.
func printNew(s source.Source) {
	items, err := s.Step(context.Background())
	if err != nil {
		fmt.Println(err)
	}
	for _, item := range items {
		job := item.Record
		asked := job.Submitted.UTC().Format("15:04")
		fmt.Println(job.Tenant, "asked for", job.GPUs, "GPUs at", asked, "and ran for", job.Duration)
	}
	if len(items) == 0 {
		fmt.Println("nothing new")
	}
	if err := s.Commit(); err != nil {
		fmt.Println(err)
	}
}

func appendTo(file, text string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fmt.Println(err)
	}
}
