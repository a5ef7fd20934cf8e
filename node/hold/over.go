package hold

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/internal/statefile"
)

const (
	// overFor is how long it is remembered that a hold is over: longer than a server that was frozen can stay in
	// touch, which may still ask for a session of one when its GPUs are somebody else's; and as old as a backup may be
	// from which the control plane is restored, which has the daemon be asked what is over of it.
	overFor = 30 * 24 * time.Hour
	// mostOver bounds how many are remembered. The oldest are forgotten first.
	mostOver = 1 << 14
)

// overList is when holds were forgotten, by allocation. It is a file to which a line is added for each, so that what it
// costs does not grow with them.
type overList struct {
	path  string
	at    map[string]time.Time
	lines int // in the file
}

// readOver reads the list, and forgets what is old. A line that was not written to its end says nothing: its hold is
// still in the book.
func readOver(path string, now time.Time) (overList, error) {
	o := overList{path: path, at: map[string]time.Time{}}
	f, err := os.Open(path) //nolint:gosec // in the daemon's own folder
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, fmt.Errorf("reading which holds are over: %w", err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		o.lines++
		id, text, _ := strings.Cut(lines.Text(), " ")
		if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && IsName(id) {
			o.at[id] = time.Unix(seconds, 0)
		}
	}
	if err := lines.Err(); err != nil {
		return o, fmt.Errorf("reading which holds are over: %w", err)
	}
	o.rebase(now)
	_ = o.rewrite(now) // where there is no room, the daemon goes on with what it has read
	return o, nil
}

// rebase has the last hold be forgotten at a time, and the others so much earlier: who wrote the list may have had
// another clock, and none must be forgotten too early, or be known for ever, because of that.
func (o *overList) rebase(now time.Time) {
	var last time.Time
	for at := range maps.Values(o.at) {
		if at.After(last) {
			last = at
		}
	}
	for id, at := range o.at {
		o.at[id] = at.Add(now.Sub(last))
	}
}

// has reports whether a hold is over.
func (o *overList) has(id string) bool {
	_, over := o.at[id]
	return over
}

// Over returns those of some allocations whose holds were ended here and are forgotten. They are not opened again.
func (k *Keeper) Over(ids []string) (all []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		if _, kept := k.book.Holds[id]; !kept && k.over.has(id) {
			all = append(all, id)
		}
	}
	return all
}

// add remembers holds, before the book forgets them.
func (o *overList) add(ids []string, now time.Time) error {
	for _, id := range ids {
		o.at[id] = now
	}
	if o.lines+len(ids) > 2*mostOver {
		return o.rewrite(now)
	}
	f, err := os.OpenFile(o.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("noting that holds are over: %w", err)
	}
	var text strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&text, "\n%s %d", id, now.Unix()) // it does not go on where another one broke off
	}
	_, err = f.WriteString(text.String())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("noting that holds are over: %w", err)
	}
	o.lines += len(ids)
	return nil
}

// rewrite forgets what is old or too much, and writes the rest anew.
func (o *overList) rewrite(now time.Time) error {
	maps.DeleteFunc(o.at, func(_ string, at time.Time) bool { return now.Sub(at) > overFor })
	ids := slices.SortedFunc(maps.Keys(o.at), func(a, b string) int { return o.at[b].Compare(o.at[a]) })
	for _, id := range ids[min(len(ids), mostOver):] {
		delete(o.at, id)
	}
	var text strings.Builder
	for id, at := range o.at {
		fmt.Fprintf(&text, "\n%s %d", id, at.Unix())
	}
	if err := statefile.Replace(o.path, []byte(text.String())); err != nil {
		return fmt.Errorf("noting which holds are over: %w", err)
	}
	o.lines = len(o.at)
	return nil
}
