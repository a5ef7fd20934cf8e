package sqlledger

import (
	"strings"

	"github.com/forewarm/forewarm/ledger"
)

// wakeRow is the part of a statement that makes a row run at the time $at, if it would
// run later.
const wakeRow = `
	UPDATE tasks SET
		run_at         = CASE WHEN state = 'ready' THEN $at ELSE run_at END,
		dispatch_after = CASE WHEN state = 'ready' THEN 0 ELSE dispatch_after END,
		wake_at        = CASE WHEN state = 'running' THEN $at ELSE wake_at END`

// wakesLater finds the rows that would run later than $at.
const wakesLater = `
	((state = 'ready' AND (run_at = 0 OR run_at > $at)) OR (state = 'running' AND (wake_at = 0 OR wake_at > $at)))`

var (
	wakeOne  = fillWake("CAST(? AS BIGINT)", " WHERE key = ? AND")
	wakeMany = fillWake("k.at", " FROM unnest($1::text[], $2::bigint[]) AS k (key, at) WHERE tasks.key = k.key AND")
)

func fillWake(at, where string) string {
	return strings.ReplaceAll(wakeRow+where+wakesLater, "$at", at)
}

// wakeTasks wakes one after the other.
func (d directWriter) wakeTasks(all []ledger.Wakeup) {
	for _, w := range all {
		wakeTask(d, w)
	}
}

// wakeTasks wakes several in one statement: a group of many pools wakes a plan for each.
func (b *batchWriter) wakeTasks(all []ledger.Wakeup) {
	if len(all) == 1 {
		wakeTask(b, all[0])
	}
	if len(all) < 2 {
		return
	}
	keys, times := make([]string, len(all)), make([]int64, len(all))
	for i, w := range all {
		keys[i], times[i] = w.Key, toMicros(w.At)
	}
	b.list = append(b.list, statement{doing: "waking tasks", text: wakeMany,
		args: [][]byte{textArray(keys), integerArray(times)}})
}

func wakeTask(s changeWriter, w ledger.Wakeup) {
	us := toMicros(w.At)
	s.execStatement("waking task "+w.Key, wakeOne, nil, us, us, w.Key, us, us)
}
