package admission

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/quota"
)

// A record is written for every booking, so what every record has is appended field by
// field: encoding/json was measured to take several times as long. The text is the one
// that encoding/json gives (TestARecordIsWrittenAsJSON), and what few records have is left
// to it.

// recordText is JSON that is being written.
type recordText struct {
	b   []byte
	err error
}

// usualRecord is how long the text of a booking's record seldom exceeds, in bytes.
const usualRecord = 1024

// appendRecord returns the text of a record.
func appendRecord(r *Record) ([]byte, error) {
	w := recordText{b: make([]byte, 0, usualRecord)}
	w.b = append(w.b, '{')
	w.key("Version")
	w.b = strconv.AppendInt(w.b, int64(r.Version), 10)
	w.key("Request")
	w.addRequest(&r.Request)
	w.key("Facts")
	w.addFacts(&r.Facts)
	w.key("Decision")
	w.addDecision(&r.Decision)
	w.b = append(w.b, '}')
	return w.b, w.err
}

func (w *recordText) addRequest(r *Request) {
	w.b = append(w.b, '{')
	w.text("Class", string(r.Class))
	w.text("Workload", string(r.Workload))
	if r.Shape != (capacity.Shape{}) {
		w.key("Shape")
		w.addShape(r.Shape)
	}
	w.window("Window", r.Window)
	if r.Range != (calendar.TimeRange{}) {
		w.other("Range", r.Range)
	}
	w.time("Since", r.Since)
	w.flag("Prolongs", r.Prolongs)
	w.integers("At", r.At)
	w.number("Boot", int64(r.Boot))
	w.flag("Now", r.Now)
	w.b = append(w.b, '}')
}

func (w *recordText) addShape(s capacity.Shape) {
	w.b = strconv.AppendInt(append(w.b, `{"Nodes":`...), int64(s.Nodes), 10)
	w.b = strconv.AppendInt(append(w.b, `,"PerNode":`...), int64(s.PerNode), 10)
	w.number("Short", int64(s.Short))
	w.b = append(w.b, '}')
}

func (w *recordText) addFacts(f *Facts) {
	w.b = append(w.b, '{')
	w.time("Now", f.Now)
	if f.Pool != (PoolFacts{}) {
		w.key("Pool")
		w.addPool(&f.Pool)
	}
	w.window("Window", f.Window)
	w.number("Cost", int64(f.Cost))
	if u := &f.Limits; u.Limits != (quota.Limits{}) || u.Ask != (quota.Ask{}) || u.Peak != (quota.Vector{}) ||
		u.Period != (quota.Spend{}) || u.Speculative != (quota.Spend{}) || u.Shared != (quota.Shared{}) || u.Times != nil {
		w.key("Limits")
		w.addUsage(u)
	}
	w.caps("Key", &f.Key)
	w.caps("User", &f.User)
	if len(f.Makers) > 0 {
		w.other("Makers", f.Makers)
	}
	if f.Pause != nil {
		w.other("Pause", f.Pause)
	}
	if f.Split != (SplitFacts{}) {
		w.key("Split")
		w.addSplit(&f.Split)
	}
	if r := &f.Room; r.Found || r.Slots != nil || r.Moves != nil || r.Candidates != nil || r.Free != 0 ||
		r.Earliest != (time.Time{}) {
		w.key("Room")
		w.addRoom(r)
	}
	if len(f.Probes) > 0 {
		w.other("Probes", f.Probes)
	}
	w.b = append(w.b, '}')
}

func (w *recordText) addPool(p *PoolFacts) {
	w.b = append(w.b, '{')
	w.text("ID", p.ID)
	w.text("Name", p.Name)
	w.number("PerNode", int64(p.PerNode))
	w.number("MaxNodes", int64(p.MaxNodes))
	w.number("MaxLease", int64(p.MaxLease))
	w.flag("Paused", p.Paused)
	w.b = append(w.b, '}')
}

func (w *recordText) addSplit(s *SplitFacts) {
	w.b = append(w.b, '{')
	w.text("Workload", string(s.Workload))
	w.number("Share", int64(s.Share))
	w.number("Used", int64(s.Used))
	w.flag("Borrow", s.Borrow)
	w.time("ClearsAt", s.ClearsAt)
	w.b = append(w.b, '}')
}

func (w *recordText) addRoom(r *RoomFacts) {
	w.b = append(w.b, '{')
	w.flag("Found", r.Found)
	w.integers("Slots", r.Slots)
	if len(r.Moves) > 0 {
		w.other("Moves", r.Moves)
	}
	if len(r.Candidates) > 0 {
		w.other("Candidates", r.Candidates)
	}
	w.number("Free", int64(r.Free))
	w.time("Earliest", r.Earliest)
	w.b = append(w.b, '}')
}

func (w *recordText) addDecision(d *Decision) {
	w.b = append(w.b, '{')
	w.window("Window", d.Window)
	w.integers("Slots", d.Slots)
	if len(d.Moves) > 0 {
		w.other("Moves", d.Moves)
	}
	if len(d.Displaced) > 0 {
		w.other("Displaced", d.Displaced)
	}
	w.number("Cost", int64(d.Cost))
	if len(d.Reasons) > 0 {
		w.other("Reasons", d.Reasons)
	}
	if len(d.Offers) > 0 {
		w.other("Offers", d.Offers)
	}
	w.b = append(w.b, '}')
}

// key begins a field of the object that is being written.
func (w *recordText) key(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

// number adds a field that is left out when it is zero, as are those of the other kinds.
func (w *recordText) number(name string, n int64) {
	if n != 0 {
		w.key(name)
		w.b = strconv.AppendInt(w.b, n, 10)
	}
}

func (w *recordText) flag(name string, yes bool) {
	if yes {
		w.key(name)
		w.b = append(w.b, "true"...)
	}
}

func (w *recordText) text(name, s string) {
	if s == "" {
		return
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			w.other(name, s)
			return
		}
	}
	w.key(name)
	w.b = append(append(append(w.b, '"'), s...), '"')
}

func (w *recordText) time(name string, t time.Time) {
	if !t.IsZero() {
		w.key(name)
		w.addTime(t)
	}
}

func (w *recordText) addTime(t time.Time) {
	text, err := t.AppendText(append(w.b, '"'))
	if err != nil {
		w.err = err
		return
	}
	w.b = append(text, '"')
}

func (w *recordText) window(name string, iv calendar.Interval) {
	if iv == (calendar.Interval{}) {
		return
	}
	w.key(name)
	w.b = append(w.b, `{"Start":`...)
	w.addTime(iv.Start)
	w.b = append(w.b, `,"End":`...)
	w.addTime(iv.End)
	w.b = append(w.b, '}')
}

func (w *recordText) integers(name string, list []int) {
	if len(list) == 0 {
		return
	}
	w.key(name)
	for i, n := range list {
		before := byte(',')
		if i == 0 {
			before = '['
		}
		w.b = strconv.AppendInt(append(w.b, before), int64(n), 10)
	}
	w.b = append(w.b, ']')
}

// other adds a field that few records have.
func (w *recordText) other(name string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		w.err = err
		return
	}
	w.key(name)
	w.b = append(w.b, text...)
}
