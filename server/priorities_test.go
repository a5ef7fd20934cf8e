package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// Whoever submits can see which classes there are, and which of them are for their jobs.
func TestPrioritiesAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createKey("looker", "viewer")
	w.createKey("worker", "member")
	names := func(key string) (all, allowed []string, usual string) {
		for _, c := range ask[contract.List[contract.PriorityClass]](w, key, "GET", "/v1/priorities", "").Items {
			all = append(all, c.Name)
			if c.Allowed {
				allowed = append(allowed, c.Name)
			}
			if c.Default {
				usual += c.Name
			}
		}
		return all, allowed, usual
	}
	all, allowed, usual := names("worker")
	require.Equal(t, []string{"low", "normal", "high"}, all)
	require.Equal(t, all, allowed)
	require.Equal(t, "normal", usual)
	_, allowed, _ = names("looker")
	require.Empty(t, allowed, "its jobs are none")

	leaves := true
	w.ledger.Scheduling().Set(ledger.SchedulingConfig{Scheduling: ledger.Scheduling{Priorities: ledger.Priorities{
		Default: "spare", Classes: map[string]ledger.PriorityClass{"spare": {Preemptible: &leaves, NoPreempting: true},
			"theirs": {Value: 5, Organizations: []string{"others"}}, "ours": {Value: 6, Organizations: []string{"acme"}},
			"urgent": {Value: 9, Least: ledger.Admin, Overdue: time.Hour}}}}})
	all, allowed, usual = names("worker")
	require.Equal(t, []string{"spare", "theirs", "ours", "urgent"}, all)
	require.Equal(t, []string{"spare", "ours"}, allowed)
	require.Equal(t, "spare", usual)
	_, allowed, _ = names("root")
	require.Equal(t, []string{"spare", "ours", "urgent"}, allowed)
	got := ask[contract.List[contract.PriorityClass]](w, "worker", "GET", "/v1/priorities", "").Items
	require.Equal(t, contract.PriorityClass{Name: "spare", Default: true, Allowed: true, Preemptible: &leaves}, got[0])
	require.Equal(t, contract.PriorityClass{Name: "urgent", Preempts: true, OverdueSeconds: 3600}, got[3])
	require.Equal(t, 401, w.send("", "GET", "/v1/priorities", "").Code)
}
