package obs

// What became of a request that was sent on to the server that decides.
const (
	ForwardAnswered = "answered"
	ForwardLost     = "lost"
)

// Forwarded records one request that was sent on to the server that decides, by what
// became of it.
func (m *Metrics) Forwarded(outcome string) {
	if m == nil {
		return
	}
	m.forwarded.WithLabelValues(outcome).Inc()
}

// Leads records whether this server decides what all servers are asked to change.
func (m *Metrics) Leads(leads bool) {
	if m == nil {
		return
	}
	value := 0.0
	if leads {
		value = 1
	}
	m.leads.WithLabelValues().Set(value)
}
