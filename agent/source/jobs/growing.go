package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/tail"
)

// growing reads what is appended to a CSV or JSONL file.
type growing struct {
	cfg    Config
	tail   *tail.Tail
	parser history.Parser
	header string // The header row that parser was given.
	counts history.Report
}

func newGrowing(c Config) (*growing, error) {
	t, err := tail.New(tail.Config{
		Path: c.Path, Name: c.Name, Checkpoint: c.Checkpoint, Clock: c.Clock,
		MaxLine: history.MaxLine, Header: c.Format == CSV,
	})
	return &growing{cfg: c, tail: t}, err
}

func (g *growing) commit() error { return g.tail.Commit() }
func (g *growing) close() error  { return g.tail.Close() }

func (g *growing) report() history.Report {
	r := g.counts
	long := g.tail.Stats().Long
	r.Rows += long
	r.Broken += long
	return r
}

func (g *growing) step(ctx context.Context) ([]source.Item, error) {
	entries, failed := g.tail.Read(ctx)
	var items []source.Item
	for _, e := range entries {
		record, kept, err := g.parseEntry(e)
		var header *history.HeaderError
		if errors.As(err, &header) {
			failed = fmt.Errorf("reading %s: %w", g.cfg.Path, err)
		}
		if kept && err == nil {
			items = append(items, source.Item{Record: &record})
		}
	}
	return items, failed
}

// parseEntry reads one line with the header row of the file that it is from.
func (g *growing) parseEntry(e tail.Entry) (record history.Record, kept bool, err error) {
	if g.parser == nil || e.Header != g.header {
		g.parser, g.header = g.cfg.newParser(), e.Header
		if g.parser.Header() {
			_, _, err = g.parser.Parse(e.Header)
		}
	}
	if e.Text == "" || (e.Number == 1 && g.cfg.Format == CSV) {
		return record, false, err
	}
	record, kept, err = g.parser.Parse(e.Text)
	g.counts.Count(e.Number, kept, err)
	return record, kept, err
}
