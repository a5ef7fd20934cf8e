package sqlledger

import (
	"encoding/json"
	"fmt"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
)

// quarantineText is a node's quarantines as they are stored: no text, if it never
// was in one. Times are microseconds, and zero stands for none.
type quarantineText struct {
	Kept     bool       `json:"kept,omitempty"`
	Resuming bool       `json:"resuming,omitempty"`
	Why      string     `json:"why,omitempty"`
	Warned   int64      `json:"warned,omitempty"`
	Spans    [][2]int64 `json:"spans"`
}

func packQuarantine(q node.Quarantines) string {
	if len(q.Spans) == 0 {
		return ""
	}
	t := quarantineText{Kept: q.Kept, Resuming: q.Resuming, Why: q.Why, Warned: toMicros(q.WarnedAt)}
	for _, s := range q.Spans {
		t.Spans = append(t.Spans, [2]int64{toMicros(s.Start), toMicros(s.End)})
	}
	text, err := json.Marshal(t)
	if err != nil {
		return "" // whole numbers can always be encoded
	}
	return string(text)
}

func unpackQuarantine(text string) (node.Quarantines, error) {
	var t quarantineText
	if text == "" {
		return node.Quarantines{}, nil
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return node.Quarantines{}, fmt.Errorf("column quarantine holds %q: %w", text, err)
	}
	q := node.Quarantines{Kept: t.Kept, Resuming: t.Resuming, Why: t.Why, WarnedAt: toTime(t.Warned)}
	for _, s := range t.Spans {
		q.Spans = append(q.Spans, calendar.Interval{Start: toTime(s[0]), End: toTime(s[1])})
	}
	return q, nil
}
