package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/internal/statefile"
)

// saltSize is the length of the salt in bytes.
const saltSize = 32

// openCheckpoint opens how far each file was read. Where what was learned of them is gone, that is forgotten: the
// history is read again, as without a checkpoint.
func (p composer) openCheckpoint() (*history.Checkpoint, error) {
	checkpoint, err := history.OpenCheckpoint(p.statePath(checkpointFile))
	if err != nil || p.hasState() {
		return checkpoint, err
	}
	forgot := false
	for _, name := range checkpoint.Names() {
		for _, at := range checkpoint.Get(name) {
			forgot = forgot || at.Lines > 0
		}
		if err := checkpoint.Forget(name); err != nil {
			return nil, err
		}
	}
	if forgot {
		p.logger.Warn("what was learned is gone, though files were read before: the histories are read again",
			"missing", stateFile, "in", p.stateHome())
	}
	return checkpoint, nil
}

// hasState reports whether something was learned before.
func (p composer) hasState() bool {
	_, err := os.Stat(p.statePath(stateFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// stateHome is the state folder as the user knows it.
func (p composer) stateHome() string {
	if p.home != "" {
		return p.home
	}
	return p.cfg.StateDir
}

// warnOfLostSalt says that pseudonyms change, where they were used before.
func (p composer) warnOfLostSalt() {
	salt, err := os.ReadFile(p.statePath(saltFile))
	if lost := errors.Is(err, fs.ErrNotExist) || err == nil && len(salt) != saltSize; !lost || !p.hasState() {
		return
	}
	p.logger.Warn("the salt is missing or damaged, and a new one takes its place: the pseudonyms of jobs and forecasts "+
		"change, so jobs of the last two days that are read again count twice", "file", saltFile, "in", p.stateHome())
}

// loadSalt reads the secret of the job pseudonyms, and makes it the first time.
func loadSalt(path string) ([]byte, error) {
	salt, err := os.ReadFile(path)
	if err == nil && len(salt) == saltSize {
		return salt, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the salt: %w", err)
	}
	salt = make([]byte, saltSize)
	if _, err := rand.Read(salt); err != nil {
		return nil, fmt.Errorf("making a salt: %w", err)
	}
	return salt, statefile.Replace(path, salt)
}
