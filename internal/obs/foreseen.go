package obs

// ShowFromStart shows counters at 0 whose labels are known: the events of each subject, the reasons for which nodes are
// not asked for, and what becomes of requests that are sent on. A rate over a counter that begins at its first event
// misses that event.
func (m *Metrics) ShowFromStart(events map[string][]string, withheld []string) {
	if m == nil {
		return
	}
	for subject, all := range events {
		for _, event := range all {
			if c, ok := m.transitions[subject]; ok {
				c.WithLabelValues(event)
			}
		}
	}
	for _, reason := range withheld {
		m.withheld.WithLabelValues(reason)
	}
	for _, outcome := range []string{ForwardAnswered, ForwardLost} {
		m.forwarded.WithLabelValues(outcome)
	}
}
