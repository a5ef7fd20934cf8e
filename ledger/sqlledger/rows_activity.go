package sqlledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/ledger"
)

type stretchRow struct {
	NodeID string `gorm:"column:node_id;primaryKey"`
	UUID   string `gorm:"column:gpu_uuid;primaryKey"`
	Since  int64  `gorm:"column:since;primaryKey"`
	Until  int64  `gorm:"column:until"`
	Idle   bool   `gorm:"column:idle"`
}

func (stretchRow) TableName() string { return "gpu_stretches" }

const keepStretch = "ON CONFLICT (node_id, gpu_uuid, since) DO NOTHING"

func stretchToRow(s ledger.GPUStretch) stretchRow {
	return stretchRow{NodeID: s.NodeID, UUID: s.GPU, Since: toMicros(s.Start), Until: toMicros(s.End), Idle: s.Idle}
}

func (r stretchRow) toValue() (ledger.GPUStretch, error) {
	return ledger.GPUStretch{NodeID: r.NodeID, Stretch: activity.Stretch{GPU: r.UUID, Idle: r.Idle,
		Interval: calendar.Interval{Start: toTime(r.Since), End: toTime(r.Until)}}}, nil
}

// activityOf is what the GPUs of nodes did in a period.
func (r costReader) activityOf(nodeIDs []string, period calendar.Interval) (map[string][]activity.Stretch, error) {
	during := make(map[string]calendar.Interval, len(nodeIDs))
	for _, id := range nodeIDs {
		during[id] = period
	}
	return capacityReader(r).GPUStretches(during)
}

// periodsAtOnce bounds how many periods one query asks about.
const periodsAtOnce = 100

func (r capacityReader) GPUStretches(during map[string]calendar.Interval) (map[string][]activity.Stretch, error) {
	byNode := map[string][]activity.Stretch{}
	for part := range slices.Chunk(partsByPeriod(during), periodsAtOnce) {
		asks, args := make([]string, len(part)), []any{}
		for i, x := range part {
			asks[i] = "node_id IN ? AND until > ? AND since < ?"
			args = append(args, x.nodeIDs, toMicros(x.Start), toMicros(x.End))
		}
		ended, err := listRows[stretchRow](r.newQuery().Where(strings.Join(asks, " OR "), args...).
			Order("node_id, gpu_uuid, since"), "reading what GPUs did")
		if err != nil {
			return nil, err
		}
		for _, s := range ended {
			byNode[s.NodeID] = append(byNode[s.NodeID], s.Stretch)
		}
	}
	open, err := r.PresencesOf(slices.Sorted(maps.Keys(during)))
	for id, p := range open {
		for _, s := range activity.Until(p.Activity, p.SeenAt) {
			if s.Overlaps(during[id]) {
				byNode[id] = append(byNode[id], s)
			}
		}
	}
	return byNode, err
}

// nodesInPeriod are nodes about which something is asked in one period.
type nodesInPeriod struct {
	calendar.Interval
	nodeIDs []string
}

// partsByPeriod are nodes by their periods, so many at once as a query may name.
func partsByPeriod(during map[string]calendar.Interval) (parts []nodesInPeriod) {
	by := map[calendar.Interval][]string{}
	for _, id := range slices.Sorted(maps.Keys(during)) {
		by[during[id]] = append(by[during[id]], id)
	}
	for period, ids := range by {
		for some := range slices.Chunk(ids, atOnce) {
			parts = append(parts, nodesInPeriod{period, some})
		}
	}
	slices.SortFunc(parts, func(a, b nodesInPeriod) int { return cmp.Compare(a.nodeIDs[0], b.nodeIDs[0]) })
	return parts
}
