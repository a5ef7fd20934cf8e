package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/forewarm/forewarm/internal/statefile"
)

// mostSpares is how many folders of attempts that are over are kept for others: file systems take their time to find
// room for new files where many have just been removed.
const mostSpares = 16

// spares are folders that are empty but for files without content.
type spares chan folder

// make makes the folder of an attempt, which is there with its order, and its result if it has one, or not at all.
func (s spares) make(f folder, what accepted, r *result) error {
	draft := f.unfinished()
	err := os.RemoveAll(string(draft))
	if err == nil {
		err = s.begin(draft)
	}
	if err == nil {
		err = draft.write(orderFile, what)
	}
	if err == nil && r != nil {
		r.Of = f.name()
		err = draft.write(resultFile, *r)
	}
	if err == nil {
		err = os.Rename(string(draft), string(f))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("making the folder of a job: %w", err), os.RemoveAll(string(draft)))
	}
	return statefile.SyncFolder(filepath.Dir(string(f)))
}

// begin makes a folder with files without content, so that what is written to them later is there to stay.
func (s spares) begin(draft folder) error {
	select {
	case spare := <-s:
		if os.Rename(string(spare), string(draft)) == nil {
			return nil
		}
	default:
	}
	if err := os.Mkdir(string(draft), 0o700); err != nil {
		return err
	}
	for _, name := range kept {
		file, err := os.OpenFile(draft.file(name), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_ = file.Close()
	}
	return statefile.SyncFolder(string(draft))
}

// remove removes the folder of an attempt that is over, or keeps it as a spare one. A daemon that begins again finishes
// what was begun.
func (s spares) remove(f folder) error {
	gone := f.unfinished()
	if err := os.Rename(string(f), string(gone)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if gone.wipe() == nil {
		select {
		case s <- gone:
			return nil
		default:
		}
	}
	return os.RemoveAll(string(gone))
}

// wipe removes what a folder has, but for files without content.
func (f folder) wipe() error {
	entries, err := os.ReadDir(string(f))
	for _, e := range entries {
		if slices.Contains(kept, e.Name()) {
			err = errors.Join(err, os.Truncate(f.file(e.Name()), 0))
		} else {
			err = errors.Join(err, os.RemoveAll(f.file(e.Name())))
		}
	}
	return err
}

// write writes a file that is there, and makes its content durable. Whoever reads it meanwhile finds no whole text.
func (f folder) write(name string, v any) error { return f.writeTo(name, v, (*os.File).Sync) }

// note is write for what the machine may forget when it ends.
func (f folder) note(name string, v any) error {
	return f.writeTo(name, v, func(*os.File) error { return nil })
}

func (f folder) writeTo(name string, v any, settle func(*os.File) error) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	file, err := os.OpenFile(f.file(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, settle(file), file.Close())
}
