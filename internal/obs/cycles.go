package obs

// What became of a look at a queue that was to be recorded.
const (
	CycleKept = "kept"
	CycleLost = "lost"
)

// CycleRecorded records what became of one look at a queue that was to be recorded.
func (m *Metrics) CycleRecorded(outcome string) {
	if m != nil {
		m.cycles.WithLabelValues(outcome).Inc()
	}
}

// ShowCyclesFromStart shows at 0 what becomes of looks that are to be recorded, in a process that records any.
func (m *Metrics) ShowCyclesFromStart() {
	if m != nil {
		m.cycles.WithLabelValues(CycleKept)
		m.cycles.WithLabelValues(CycleLost)
	}
}
