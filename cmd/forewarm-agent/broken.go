package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/jobs"
)

// watchful tells of rows of a history that cannot be read. It looks in the
// source's own goroutine, after each step.
type watchful struct {
	*jobs.Jobs
	log      *slog.Logger
	told     int64
	nameless bool // told that rows have no names
	alike    bool // told that others call jobs as Forewarm does
}

// Step reads on and tells what was broken.
func (w *watchful) Step(ctx context.Context) ([]source.Item, error) {
	items, err := w.Jobs.Step(ctx)
	report := w.Report()
	if report.Broken > w.told {
		text := fmt.Sprintf("source %s: rows that cannot be read: %d of %d; the rest counts", w.Name(), report.Broken,
			report.Rows)
		if n := len(report.Errors); n > 0 && report.Broken <= int64(n) {
			text += "; the latest: " + report.Errors[n-1].Error()
		}
		w.log.Warn(text)
	}
	if !w.nameless && slices.ContainsFunc(items, isNameless) {
		w.nameless = true
		w.log.Warn("source " + w.Name() + ": " + whyNames)
	}
	if !w.alike && slices.ContainsFunc(items, resemblesOwn) {
		w.alike = true
		w.log.Warn("source " + w.Name() + ": " + whyOwnUser)
	}
	w.told = report.Broken // of a history that was replaced, the count begins anew
	return items, err
}

// whyNames says what rows without names cost, and the fix.
const whyNames = "rows have neither name nor comment nor labels, so a placeholder of Forewarm among them counts as " +
	"a job of yours; " +
	"add the column name"

// whyOwnUser says why jobs count that are called as Forewarm's are, and the fix.
const whyOwnUser = "jobs are called like Forewarm's own and are another user's, so they count as jobs of yours; " +
	"if Forewarm submits as that user, say so with own_user"

func resemblesOwn(i source.Item) bool { return i.Record != nil && i.Record.ResemblesOwn }

// isNameless reports whether an item is a job that cannot be told from a placeholder.
func isNameless(i source.Item) bool { return i.Record != nil && i.Record.Nameless }
