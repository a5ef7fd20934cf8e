package upgrade

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/internal/statefile"
)

// lockProgram keeps other upgrades of a program from it until what is returned is closed, or this process ends.
func lockProgram(program string) (*os.File, error) {
	f, err := os.OpenFile(program+locked, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keeping other upgrades away: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("another upgrade of %s is under way", program)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// trial is what is known of programs that were put in the place of another, and that the control plane has not heard:
// the other one, which is kept, is the last that is known to be good.
type trial struct {
	Sums []string `json:"sums"` // of the programs
	From moment   `json:"from"` // before the last of them was put there
}

// trialOf returns the trial of the program in its place, whose sum is given, as whoever put it there was killed; an
// empty one: it was heard, or no upgrade has put it there.
func trialOf(program, sum string, welcomed Daemon) (trial, error) {
	var t trial
	if _, err := statefile.ReadKnown(program+Unwelcomed, &t); err != nil {
		return t, err
	}
	_, err := os.Stat(program + Previous)
	if err != nil || t.From.isBefore(welcomed) || !slices.Contains(t.Sums, sum) {
		return trial{}, nil
	}
	return t, nil
}

// endTrial notes that the program in its place is a good one. Where that fails, the daemon that was welcomed says so.
func endTrial(program string) { _ = os.Remove(program + Unwelcomed) }

// replace puts a program in the place of another, which is kept if it was heard. There is one of them at each moment,
// and its sum is written down. Where that fails, the other one is in its place.
func (cfg Config) replace(next string) error {
	sum, err := sumOf(cfg.Program)
	if err != nil {
		return fmt.Errorf("reading the old program: %w", err)
	}
	from, err := cfg.look()
	if err != nil {
		return err
	}
	t, err := trialOf(cfg.Program, sum, from.Welcomed)
	if err != nil {
		return err
	}
	sums, keeps := []string{strings.ToLower(cfg.SHA256), sum}, len(t.Sums) == 0
	if !keeps {
		kept, err := sumOf(cfg.Program + Previous)
		if err != nil {
			return fmt.Errorf("reading the program before: %w", err)
		}
		sums = append(sums, kept)
	}
	if err := statefile.Replace(cfg.Program+Sums, []byte(strings.Join(sums, "\n")+"\n")); err != nil {
		return fmt.Errorf("writing down the sums of the programs: %w", err)
	}
	err = statefile.Write(cfg.Program+Unwelcomed, trial{Sums: append(t.Sums, sums[0]), From: from})
	if err != nil {
		return fmt.Errorf("writing down that nobody has heard the new program: %w", err)
	}
	if keeps {
		err = keep(cfg.Program)
	}
	if err == nil {
		err = os.Rename(next, cfg.Program)
	}
	if err != nil {
		if keeps {
			endTrial(cfg.Program)
		}
		return fmt.Errorf("putting the new program in its place: %w", err)
	}
	return nil
}

// keep has a program stay beside the one that takes its place.
func keep(program string) error {
	err := os.Remove(program + Previous)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = os.Link(program, program+Previous)
	}
	return err
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the daemon's program
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), err
}
