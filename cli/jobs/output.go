package jobs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// printer shows pieces of output, of several ranks at once.
type printer struct {
	app  *app.App
	cmd  *cobra.Command
	many bool // whether lines are marked with the rank of their node

	mu    sync.Mutex
	lines map[source]*bytes.Buffer // that have not ended yet
}

// source is where a line comes from.
type source struct {
	rank   int
	stream string
}

func newPrinter(a *app.App, cmd *cobra.Command, many bool) *printer {
	return &printer{app: a, cmd: cmd, many: many, lines: map[source]*bytes.Buffer{}}
}

// pieceView shows output as data.
var pieceView = output.View[contract.JobOutput]{
	Name: func(x contract.JobOutput) string { return fmt.Sprint(x.Offset) }}

// show shows a piece: its bytes as they are, or, where lines are marked, its lines once they have
// ended. In formats for programs each piece is a value.
func (p *printer) show(x contract.JobOutput) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.app.Filter != nil || p.app.Flags.Output == output.JSONLines:
		p.app.Flags.Output = output.JSONLines
		return output.List(p.app, p.cmd, pieceView, []contract.JobOutput{x})
	case !p.many:
		return write(p.streamOf(x.Stream), x.Data)
	}
	from := source{x.Rank, x.Stream}
	line := p.lines[from]
	if line == nil {
		line = &bytes.Buffer{}
		p.lines[from] = line
	}
	line.Write(x.Data)
	for {
		at := bytes.IndexByte(line.Bytes(), '\n')
		if at < 0 {
			if line.Len() <= longestLine {
				return nil
			}
			at = line.Len() - 1
		}
		if err := p.writeLine(from, line.Next(at+1)); err != nil {
			return err
		}
	}
}

// longestLine is how long a line may be before it is shown without its end.
const longestLine = 64 << 10

// say tells the person something, between two pieces.
func (p *printer) say(message string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.app.Say(p.cmd, message, args...)
}

// finish shows the lines that have no end.
func (p *printer) finish() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, from := range slices.SortedFunc(maps.Keys(p.lines), func(x, y source) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.stream, y.stream))
	}) {
		if line := p.lines[from]; line.Len() > 0 {
			if err := p.writeLine(from, line.Next(line.Len())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *printer) writeLine(from source, line []byte) error {
	marked := append(fmt.Appendf(nil, "[%d] ", from.rank), line...)
	if !bytes.HasSuffix(marked, []byte("\n")) {
		marked = append(marked, '\n')
	}
	return write(p.streamOf(from.stream), marked)
}

func (p *printer) streamOf(name string) io.Writer {
	if name == "stderr" {
		return p.cmd.ErrOrStderr()
	}
	return p.cmd.OutOrStdout()
}

func write(w io.Writer, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("%w: %w", errWriting, err)
	}
	return nil
}

// errWriting says that nobody takes what is shown.
var errWriting = errors.New("writing")
