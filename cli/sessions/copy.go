package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/client/session"
	wire "github.com/forewarm/forewarm/contract/session"
)

// NewCopyCommand is the command cp.
func NewCopyCommand(a *app.App) *cobra.Command {
	var node int
	c := &cobra.Command{
		Use: "cp FROM TO", Short: "Copy files to an allocation's node, or from it",
		Args: flags.ExactArgs("FROM", "TO"),
		Long: `Copy a file, or a folder with all that is in it, to a node of an allocation or from it. One of FROM and TO
names the allocation, as in otter:results. A path there begins in the allocation's folder, which ends with the
allocation.

What is copied to a folder that is there, or to a name that ends in a slash, goes into it. What is neither file,
folder nor link is left out, and named. What is not copied to its end replaces nothing. The node needs tar.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := parseCopy(args[0], args[1])
			if err != nil {
				return err
			}
			where, err := open(a, cmd, c.ref, node)
			if err != nil {
				return err
			}
			if a.Flags.DryRun {
				if err := where.check(cmd.Context()); err != nil {
					return err
				}
				a.Say(cmd, "Dry run: nothing was copied.")
				return nil
			}
			if c.up {
				err = c.upload(cmd.Context(), where, cmd.ErrOrStderr())
			} else {
				err = c.download(cmd.Context(), where, cmd.ErrOrStderr())
			}
			return explainCopy(where, err)
		},
	}
	c.Flags().IntVar(&node, "node", 0, "the rank of the node")
	return c
}

// explainCopy says why nothing, or not all, was copied.
func explainCopy(where at, err error) error {
	if _, ended := errors.AsType[*session.EndError](err); ended || errors.Is(err, session.ErrCut) {
		return explain(where, err)
	}
	if status, ok := errors.AsType[*exit.StatusError](err); ok {
		return &exit.Error{Code: exit.Failed, Next: []string{"forewarm exec " + where.id + " -- ls -la"},
			Message: fmt.Sprintf("not all was copied: on the node, %v", status)}
	}
	return err
}

// copying is what is copied where.
type copying struct {
	ref    string // of the allocation
	there  string // the path on the node
	here   string // the path on this machine
	up     bool   // from here to there
	folder bool   // what it is copied to is to be a folder
}

func parseCopy(from, to string) (copying, error) {
	fromRef, fromPath, fromThere := splitRemote(from)
	toRef, toPath, toThere := splitRemote(to)
	switch {
	case fromThere == toThere:
		return copying{}, exit.UsageErrorf("forewarm cp --help",
			"one of FROM and TO must name an allocation, as in otter:results; ./a:b is a file here")
	case fromThere:
		return copying{ref: fromRef, there: fromPath, here: to, folder: strings.HasSuffix(to, "/")}, nil
	}
	return copying{ref: toRef, there: toPath, here: from, up: true, folder: strings.HasSuffix(toPath, "/")}, nil
}

// splitRemote takes NAME:PATH apart. What has a slash before its colon is a path of here.
func splitRemote(text string) (ref, there string, ok bool) {
	ref, there, ok = strings.Cut(text, ":")
	if !ok || ref == "" || strings.ContainsAny(ref, "/.") {
		return "", "", false
	}
	if there == "" {
		there = "."
	}
	return ref, there, true
}

// tool runs a program of the node with an input and an output.
func (w at) tool(ctx context.Context, in io.Reader, out, errs io.Writer, words ...string) error {
	end, err := w.server.Run(ctx, w.id, session.Command{Command: wire.Command{Arguments: words}, Node: w.node,
		Stdin: in, Stdout: out, Stderr: errs})
	if err == nil && end.ExitCode != 0 {
		err = &exit.StatusError{Code: end.ExitCode}
	}
	return err
}

// test reports whether a path of the node is what test(1) asks for.
func (w at) test(ctx context.Context, what, name string) (bool, error) {
	err := w.tool(ctx, nil, nil, nil, "test", what, name)
	if _, is := errors.AsType[*exit.StatusError](err); is {
		return false, nil
	}
	return err == nil, err
}

// receiveAll unpacks an archive of $2 in the folder $1, beside what is there, and moves it to its
// place when all of it has come: an interruption leaves nothing. A folder that is there already, or
// that its owner may not move, is filled instead.
// Until it is known what to remove, no signal is heard: who hangs up repeats it with another one.
const receiveAll = `mkdir -p -- "$1" && cd -- "$1" || exit
trap "" HUP INT TERM
part=$(mktemp -d ./.forewarm-part.XXXXXX) || exit
trap 'trap "" HUP INT TERM; chmod -R u+w -- "$part"; rm -rf -- "$part"' EXIT
trap 'exit 1' HUP INT TERM
tar -xf - -C "$part" || exit
trap "" HUP INT TERM
if [ -d "./$2" ] && [ ! -d "$part/$2" ]; then
	echo "$2 is a folder, and is not replaced" >&2
	exit 1
fi
if [ -e "./$2" ] && [ ! -f "./$2" ] && [ ! -d "./$2" ]; then
	echo "$2 is neither file nor folder, and is not replaced" >&2
	exit 1
fi
if [ -d "./$2" ] || ! mv -f -- "$part/$2" "./$2" 2>/dev/null; then
	tar -cf - -C "$part" -- "$2" | tar -xf -
fi`

// notCopied says that something is neither file nor folder.
func notCopied(name, next string) error {
	return exit.UsageErrorf(next, "%s is neither file nor folder: it is not copied", name)
}

// upload packs what is here, and has tar unpack it there.
func (c copying) upload(ctx context.Context, where at, errs io.Writer) error {
	info, err := os.Stat(c.here)
	if err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return notCopied(c.here, fmt.Sprintf("forewarm exec %s -- sh -c 'cat > NAME' < %s", where.id, flags.Quote(c.here)))
	}
	within, err := where.test(ctx, "-d", c.there)
	if err != nil {
		return err
	}
	if info.IsDir() && !within {
		file, err := where.test(ctx, "-e", c.there)
		if err != nil {
			return err
		}
		if file {
			return &exit.Error{Code: exit.Conflict, Message: c.there + " is there, and no folder: a folder cannot replace it",
				Next: []string{fmt.Sprintf("forewarm exec %s -- ls -l %s", where.id, flags.Quote(c.there))}}
		}
	}
	dir, name := path.Split(path.Clean(c.there))
	if within || c.folder {
		dir, name = c.there, filepath.Base(absolute(c.here))
	}
	if dir == "" {
		dir = "."
	}
	packed, write := io.Pipe()
	go func() { write.CloseWithError(pack(write, errs, c.here, name)) }()
	defer func() { _ = packed.Close() }()
	failed := &failure{from: packed}
	if err := where.tool(ctx, failed, nil, errs, "sh", "-c", receiveAll, "sh", dir, name); err != nil {
		return errors.Join(failed.err, err)
	}
	return failed.err
}

// failure keeps why a reader failed, which an end of the input does not tell.
type failure struct {
	from io.Reader
	err  error
}

// Read implements io.Reader.
func (f *failure) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// download has tar pack what is there, and unpacks it here.
func (c copying) download(ctx context.Context, where at, errs io.Writer) error {
	dir, name := path.Split(path.Clean(c.there))
	if name == "." || name == ".." {
		dir, name = c.there, "."
	}
	if dir == "" {
		dir = "."
	}
	if err := c.seeWhatIsHere(where); err != nil {
		return err
	}
	to, as := filepath.Split(filepath.Clean(c.here))
	if info, err := os.Stat(c.here); err == nil && info.IsDir() || c.folder {
		to, as = c.here, name
		if err := os.MkdirAll(to, 0o777); err != nil { //nolint:gosec // as mkdir does
			return fmt.Errorf("copying: %w", err)
		}
	}
	if to == "" {
		to = "."
	}
	packed, write := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := unpack(packed, errs, to, name, as)
		_ = packed.CloseWithError(err) // the node is not read on
		unpacked <- err
	}()
	err := where.tool(ctx, nil, write, errs, "tar", "-cf", "-", "-C", dir, "--", name)
	_ = write.CloseWithError(io.EOF)
	if failed := <-unpacked; failed != nil && err == nil {
		return failed
	}
	return err
}

// seeWhatIsHere follows a link to what is to be replaced, and refuses to replace what is neither file nor folder, such
// as a device.
func (c *copying) seeWhatIsHere(where at) error {
	if _, err := os.Lstat(c.here); err != nil { // nothing is, or it is told later why it cannot be seen
		return nil
	}
	info, err := os.Stat(c.here)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return exit.UsageErrorf(fmt.Sprintf("forewarm exec %s -- cat %s > %s", where.id, flags.Quote(c.there),
			flags.Quote(c.here)), "%s is neither file nor folder: it is not replaced", c.here)
	}
	if c.here, err = filepath.EvalSymlinks(c.here); err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	return nil
}

func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
