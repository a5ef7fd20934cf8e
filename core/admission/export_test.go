package admission

// NewRecord observes and judges the request, and records both.
func NewRecord(r Request, v View) Record {
	f := Observe(r, v)
	return Record{Version: RecordVersion, Request: r, Facts: f, Decision: Judge(r, f)}
}
