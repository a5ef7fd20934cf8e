package sqlledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// Save writes a change: parents before children, and what ends before what begins,
// so that a slot or a GPU can change hands within one change.
func (t *tx) Save(c ledger.Change) error {
	if t.failure != nil {
		return t.failure // nothing can be written over a failure
	}
	s := t.changeWriter()
	t.tasks = t.tasks || len(c.Tasks)+len(c.Finished)+len(c.Wake) > 0
	if t.urgent = t.urgent || c.Urgent; c.Urgent && t.store.urgent.database != nil {
		s.execStatement("telling others that it is urgent", "NOTIFY "+urgentChannel, nil)
	}
	if c.PepperCheck != "" {
		addRows(s, "the installation", []installationRow{installationToRow(c.PepperCheck)}, keepInstallation)
	}
	saveRows(s, "organization", c.Organizations, organizationToRow)
	saveRows(s, "user", c.Users, userToRow)
	saveRows(s, "key", c.Keys, keyToRow)
	saveRows(s, "pool", c.Pools, poolToRow)
	saveNodes(s, c.Nodes)
	s.checkReferences(newReferences(c))
	saveRows(s, "reservation", c.Reservations, reservationToRow)
	saveAllocations(s, c.Allocations)
	saveRows(s, "schedule", c.Schedules, scheduleToRow)
	saveRows(s, "job", c.Jobs, jobToRow)
	addRows(s, "the ranks of jobs", rowsOf(c.JobRanks, rankToRow), replaceRank)
	addRows(s, "submissions of jobs", lastOfEach(rowsOf(c.JobEntries, entriesToRow)), replaceEntries)
	keepStartForecasts(s, c.JobStarts)
	forgetStartForecasts(s, c.ForgetStarts)
	addRows(s, "whose turn it is", rowsOf(c.JobTurns, turnsToRow), replaceTurns)
	addRows(s, "the output of jobs", rowsOf(c.JobOutput, outputToRow), keepOutput)
	trimOutput(s, c.TrimmedOutput)
	dropInput(s, c.DroppedInput)
	saveRows(s, "plan", c.Plans, previewToRow)
	used, usedByUsers := usageRows(c.Uses)
	addRows(s, "what was used", used, replaceUsage)
	addRows(s, "what users used", usedByUsers, replaceUserUsage)
	addRows(s, "orphans", rowsOf(c.Orphans, orphanToRow), replaceOrphan)
	addRows(s, "provisioners", rowsOf(c.Provisioners, provisionerToRow), replaceProvisioner)
	addRows(s, "what was watched", rowsOf(c.Watched, watchedToRow), replaceWatched)
	saveRows(s, "daemon", c.Daemons, daemonToRow)
	addRows(s, "what daemons said", rowsOf(c.Presences, presenceToRow), replacePresence)
	addRows(s, "what GPUs did", rowsOf(c.GPUStretches, stretchToRow), keepStretch)
	addRows(s, "pauses", rowsOf(c.Pauses, pauseToRow), replacePause)
	addRows(s, "tasks", rowsOf(c.Tasks, taskToRow), keepKeyed)
	addRows(s, "stored answers", rowsOf(c.Replays, replayToRow), "")
	addRows(s, "forecasts", rowsOf(c.Forecasts, forecastToRow), "")
	closeForecasts(s, c.ClosedForecasts)
	addRows(s, "events", rowsOf(c.Events, eventToRow), "")
	addRows(s, "seals", rowsOf(c.Seals, sealToRow), "")
	for _, run := range c.Finished {
		finishTask(s, run, t.Now())
	}
	t.noteWritten(c)
	t.saveRevisions(s, c.Revisions)
	s.wakeTasks(earliestOfEach(c.Wake))
	return s.flushChanges(c.Last && t.nested == 0)
}

// earliestOfEach returns the earliest of the wake-ups of each task, ordered by key.
func earliestOfEach(all []ledger.Wakeup) []ledger.Wakeup {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b ledger.Wakeup) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), a.At.Compare(b.At))
	})
	return slices.CompactFunc(sorted, func(a, b ledger.Wakeup) bool { return a.Key == b.Key })
}

// newReferences returns the organizations and pools of new bookings and forecasts,
// each once.
func newReferences(c ledger.Change) (organizations, pools []string) {
	own, in := map[string]bool{}, map[string]bool{}
	for _, r := range c.Reservations {
		if r.Version == 0 {
			own[r.OrganizationID], in[r.PoolID] = true, true
		}
	}
	for _, a := range c.Allocations {
		if a.Version == 0 {
			own[a.OrganizationID], in[a.PoolID] = true, true
		}
	}
	for _, j := range c.Jobs {
		if j.Version == 0 {
			own[j.OrganizationID], in[j.PoolID] = true, true
		}
	}
	for _, f := range c.Forecasts {
		own[f.OrganizationID], in[f.PoolID] = true, true
	}
	return slices.Sorted(maps.Keys(own)), slices.Sorted(maps.Keys(in))
}

// changeWriter returns the writer of the transaction's changes.
func (t *tx) changeWriter() changeWriter {
	if t.session != nil {
		return &batchWriter{t: t}
	}
	return directWriter{t}
}

func rowsOf[T, R any](items []T, toRow func(T) R) []R {
	rows := make([]R, len(items))
	for i, item := range items {
		rows[i] = toRow(item)
	}
	return rows
}

// What happens to rows that exist already.
const (
	replacePause = `ON CONFLICT (organization_id) DO UPDATE SET
		reason = excluded.reason, paused_by = excluded.paused_by, paused_at = excluded.paused_at,` +
		` until = excluded.until`
	keepKeyed = "ON CONFLICT (key) WHERE key <> '' DO NOTHING"
	// Only the allocation's own rows may exist already: for a GPU that another one
	// holds, the constraint must fail.
	keepHold      = "ON CONFLICT (allocation_id, gpu_uuid) DO NOTHING"
	replaceDevice = `ON CONFLICT (node_id, uuid) DO UPDATE SET
		idx = excluded.idx, model = excluded.model, memory_mib = excluded.memory_mib
		WHERE gpus.idx <> excluded.idx OR gpus.model <> excluded.model OR gpus.memory_mib <> excluded.memory_mib`
)

// saveNodes writes nodes, those that are gone first, and their devices.
func saveNodes(s changeWriter, nodes []node.Node) {
	over, live := splitList(nodes, func(n node.Node) bool { return node.Machine.Terminal(n.State()) })
	saveRows(s, "node", over, nodeToRow)
	saveRows(s, "node", live, nodeToRow)
	var devices []gpuRow
	for _, n := range nodes {
		if len(n.Devices) > 0 && n.Version > 0 {
			forgetDevices(s, n)
		}
		for _, d := range n.Devices {
			devices = append(devices, gpuRow{NodeID: n.ID, UUID: d.UUID, Index: d.Index, Model: d.Model,
				MemoryMiB: d.MemoryMiB})
		}
	}
	addRows(s, "devices", devices, replaceDevice)
}

// forgetDevices deletes the devices that a node no longer has.
func forgetDevices(s changeWriter, n node.Node) {
	args := []any{n.ID}
	for _, d := range n.Devices {
		args = append(args, d.UUID)
	}
	s.execStatement("replacing the devices of node "+n.ID,
		"DELETE FROM gpus WHERE node_id = ? AND uuid NOT IN (?"+strings.Repeat(", ?", len(n.Devices)-1)+")", nil,
		args...)
}

// saveAllocations writes allocations and what they hold, and ends the holds of
// those that are over.
func saveAllocations(s changeWriter, allocations []allocation.Allocation) {
	saveRows(s, "allocation", allocations, allocationToRow)
	var holds []holdRow
	for _, a := range allocations {
		until := heldUntil(a)
		if until != nil && len(a.Devices) > 0 {
			s.execStatement("ending what allocation "+a.ID+" holds",
				"UPDATE allocation_gpus SET until = ? WHERE allocation_id = ? AND until IS NULL", nil, *until, a.ID)
		}
		for i, d := range a.Devices {
			holds = append(holds, holdRow{
				AllocationID: a.ID, NodeID: d.NodeID, UUID: d.UUID, Index: i, Since: toMicros(a.ActiveAt), Until: until,
			})
		}
	}
	addRows(s, "what allocations hold", holds, keepHold)
}

// heldUntil returns when an allocation gave back what it held; nil while it lives.
func heldUntil(a allocation.Allocation) *int64 {
	if a.Live() {
		return nil
	}
	ended := toMicros(a.EndedAt)
	return &ended
}

// splitList returns the items for which a condition holds, and the others.
func splitList[T any](items []T, condition func(T) bool) (yes, no []T) {
	for _, item := range items {
		if condition(item) {
			yes = append(yes, item)
		} else {
			no = append(no, item)
		}
	}
	return yes, no
}
