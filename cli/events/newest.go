package events

import (
	"errors"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// newest is a flag that reads how many of the newest events are wanted, or for how long back.
type newest struct {
	count int           // 0: all
	span  time.Duration // 0: however long ago
}

var errNewest = errors.New("want a number of events, such as 20, or a period up to now, such as 5m")

// Set reads the text form.
func (n *newest) Set(text string) error {
	if count, err := strconv.Atoi(text); err == nil {
		*n = newest{count: count}
		return nil
	}
	span, err := strictyaml.ParseDuration(text)
	if err != nil || span == 0 {
		return errNewest
	}
	*n = newest{span: span}
	return nil
}

// String writes the text form.
func (n *newest) String() string {
	if n.span > 0 {
		return format.Duration(n.span)
	}
	return strconv.Itoa(n.count)
}

// Type names the flag's value in help texts.
func (*newest) Type() string { return "number|duration" }

// from is the time from which events are wanted; zero: however long ago.
func (n *newest) from(now time.Time) time.Time {
	if n.span == 0 {
		return time.Time{}
	}
	return now.Add(-n.span)
}
