package attach

// Places counts sessions, for tests.
type Places struct{ places }

// Enter is enter, for tests.
func (p *Places) Enter(allocationID string, port bool) (leave func(), err error) {
	return p.enter(allocationID, port)
}
