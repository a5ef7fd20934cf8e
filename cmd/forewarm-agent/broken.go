package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/jobs"
)

// watchful tells of rows of a history that cannot be read. It looks in the
// source's own goroutine, after each step.
type watchful struct {
	*jobs.Jobs
	log  *slog.Logger
	told int64
}

// Step reads on and tells what was broken.
func (w *watchful) Step(ctx context.Context) ([]source.Item, error) {
	items, err := w.Jobs.Step(ctx)
	report := w.Report()
	if report.Broken > w.told {
		text := fmt.Sprintf("source %s: rows that cannot be read: %d of %d; the rest counts", w.Name(), report.Broken, report.Rows)
		if n := len(report.Errors); n > 0 && report.Broken <= int64(n) {
			text += "; the latest: " + report.Errors[n-1].Error()
		}
		w.log.Warn(text)
	}
	w.told = report.Broken // of a history that was replaced, the count begins anew
	return items, err
}
