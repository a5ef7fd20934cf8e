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
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// printer shows pieces of output, of several ranks at once.
type printer struct {
	app  *app.App
	cmd  *cobra.Command
	many bool // whether lines are marked with the rank of their node
	raw  bool // whether a terminal gets output as it is
	// files take what is shown; nil: it goes to this command's own streams.
	files *files

	mu      sync.Mutex
	lines   map[source]*bytes.Buffer // that have not ended yet
	filters map[source]*terminalFilter
}

// source is where a line comes from.
type source struct {
	rank   int
	stream string
}

func newPrinter(a *app.App, cmd *cobra.Command, many, raw bool) *printer {
	return &printer{app: a, cmd: cmd, many: many, raw: raw, lines: map[source]*bytes.Buffer{},
		filters: map[source]*terminalFilter{}}
}

// filter returns what of a piece may be shown where it goes: a job's output could retitle a terminal, and worse.
func (p *printer) filter(x contract.JobOutput) []byte {
	if p.raw || p.files != nil || !p.app.Terminal(p.streamOf(x.Stream)) {
		return x.Data
	}
	from := source{x.Rank, x.Stream}
	if p.filters[from] == nil {
		p.filters[from] = &terminalFilter{}
	}
	return p.filters[from].Filter(x.Data)
}

// uncolour ends what colours a job has left on, so that they are not those of what follows on the terminal. It comes
// last: nobody is there to be told that it failed.
func (p *printer) uncolour() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for from, filter := range p.filters {
		if filter.coloured {
			_ = write(p.streamOf(from.stream), []byte("\x1b[0m"))
		}
		filter.coloured = false
	}
}

// pieceView shows output as data.
var pieceView = output.View[contract.JobOutput]{
	Name: func(x contract.JobOutput) string { return fmt.Sprint(x.Offset) }}

// show shows a piece: its bytes as they come, or, where lines are marked, its lines once they have
// ended. In formats for programs each piece is a value.
func (p *printer) show(x contract.JobOutput) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.tellLeftOut(x); err != nil {
		return err
	}
	switch {
	case p.files == nil && (p.app.Filter != nil || p.app.Flags.Output == output.JSONLines):
		p.app.Flags.Output = output.JSONLines
		return output.List(p.app, p.cmd, pieceView, []contract.JobOutput{x})
	case !p.many:
		return p.write(source{x.Rank, x.Stream}, p.filter(x))
	}
	from := source{x.Rank, x.Stream}
	line := p.lines[from]
	if line == nil {
		line = &bytes.Buffer{}
		p.lines[from] = line
	}
	line.Write(p.filter(x))
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

// tellLeftOut says in its place how much of the output is not kept. A line that was cut there is shown before. In a
// file, which is taken for whole, a line says so, too.
func (p *printer) tellLeftOut(x contract.JobOutput) error {
	if x.LeftOut == 0 {
		return nil
	}
	mark := ""
	if p.many {
		mark = fmt.Sprintf("[%d] ", x.Rank)
	}
	for _, stream := range []string{"stdout", "stderr"} {
		if err := p.endLine(source{x.Rank, stream}); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%s left out here (%d to %d)", format.Count(x.LeftOut, "byte"), x.Offset-x.LeftOut, x.Offset)
	p.app.Say(p.cmd, "%s… %s: of long output its beginning and its end are kept", mark, what)
	if p.files == nil {
		return nil
	}
	return p.write(source{x.Rank, x.Stream}, []byte("\n[forewarm: "+what+"]\n"))
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
		if err := p.endLine(from); err != nil {
			return err
		}
	}
	return nil
}

// endLine shows a line that has no end, if there is one.
func (p *printer) endLine(from source) error {
	line := p.lines[from]
	if line == nil || line.Len() == 0 {
		return nil
	}
	return p.writeLine(from, line.Next(line.Len()))
}

func (p *printer) writeLine(from source, line []byte) error {
	marked := append(fmt.Appendf(nil, "[%d] ", from.rank), line...)
	if !bytes.HasSuffix(marked, []byte("\n")) {
		marked = append(marked, '\n')
	}
	return p.write(from, marked)
}

// write writes where output of a stream goes.
func (p *printer) write(to source, data []byte) error {
	if p.files == nil {
		return write(p.streamOf(to.stream), data)
	}
	w, err := p.files.writer(to)
	if err != nil {
		return fmt.Errorf("%w: %w", errWriting, err)
	}
	return write(w, data)
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
