package sqlledger

import (
	"slices"
	"time"

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
	return capacityReader(r).GPUStretches(nodeIDs, period.Start, period.End)
}

func (r capacityReader) GPUStretches(nodeIDs []string, from, to time.Time) (map[string][]activity.Stretch, error) {
	byNode := map[string][]activity.Stretch{}
	for part := range slices.Chunk(nodeIDs, atOnce) {
		ended, err := listRows[stretchRow](r.newQuery().
			Where("node_id IN ? AND until > ? AND since < ?", part, toMicros(from), toMicros(to)).
			Order("node_id, gpu_uuid, since"), "reading what GPUs did")
		if err != nil {
			return nil, err
		}
		for _, s := range ended {
			byNode[s.NodeID] = append(byNode[s.NodeID], s.Stretch)
		}
	}
	open, err := r.PresencesOf(nodeIDs)
	for id, p := range open {
		for _, s := range activity.Until(p.Activity, p.SeenAt) {
			if s.Start.Before(to) && s.End.After(from) {
				byNode[id] = append(byNode[id], s)
			}
		}
	}
	return byNode, err
}
