package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/forewarm/forewarm/ledger"
)

// sealMark keeps the newest seal of the journal that this process has seen in a
// file of the data directory, where who writes to the database cannot write.
type sealMark struct {
	path string
	log  *slog.Logger
}

// sealMark is the file's place. Two installations that share a directory have
// different deployments.
func (c Config) sealMark(log *slog.Logger) sealMark {
	return sealMark{path: filepath.Join(c.DataDir, "seals-"+c.Deployment+".mark"), log: log}
}

// Load implements ledger.SealMemory.
func (m sealMark) Load() (mark ledger.SealMark, err error) {
	text, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return mark, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &mark)
	}
	if err != nil {
		return ledger.SealMark{}, fmt.Errorf("reading the newest seal that was seen, from %s: %w; remove the file if the journal is known to be right", m.path, err)
	}
	return mark, nil
}

// Save implements ledger.SealMemory.
func (m sealMark) Save(mark ledger.SealMark) {
	if err := m.write(mark); err != nil {
		m.log.Warn("seals that are removed from the database may not be missed: the newest could not be noted", "path", m.path, "error", err)
	}
}

// write replaces the file at once: two processes may share it.
func (m sealMark) write(mark ledger.SealMark) error {
	text, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	fresh, err := os.CreateTemp(filepath.Dir(m.path), filepath.Base(m.path)+".*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(text)
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), m.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return nil
}

// Where implements ledger.SealMemory.
func (m sealMark) Where() string {
	host, err := os.Hostname()
	if err != nil {
		return m.path
	}
	return host + ":" + m.path
}
