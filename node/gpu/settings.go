package gpu

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/forewarm/forewarm/internal/statefile"
)

// settingsOf are the settings of GPUs, by UUID and name. What a GPU does not tell is left out.
type settingsOf map[string]map[string]uint32

// Restored is what came of restoring the settings of a GPU.
type Restored struct {
	UUID    string   `json:"uuid"`
	Changed []string `json:"changed,omitempty"` // what was not as it should be, and is now
	Barred  []string `json:"barred,omitempty"`  // what still is not, as the daemon may not change it
	Wrong   string   `json:"wrong,omitempty"`   // what still is not, although it may
	Why     string   `json:"why,omitempty"`     // why nothing is known of it
}

// Settings remembers how GPUs are set while nobody has them, and sets them so again, through a child of its own for
// each time. It is safe for concurrent use.
type Settings struct {
	Command []string // as a Child's
	File    string   // in which they are kept
	BootID  string   // those of an earlier boot are over

	mu sync.Mutex
}

// remembered is the file with how GPUs were set.
type remembered struct {
	BootID string     `json:"boot_id"`
	GPUs   settingsOf `json:"gpus"`
}

// Remember reads how GPUs are set that nobody holds. Of those that somebody does, what was read before counts, if
// anything was.
func (s *Settings) Remember(ctx context.Context, held []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.read()
	return s.remember(ctx, known, func(uuid string) bool { return known[uuid] == nil || !slices.Contains(held, uuid) })
}

// remember adds to what is known how the GPUs are set that are wanted.
func (s *Settings) remember(ctx context.Context, known settingsOf, wanted func(uuid string) bool) error {
	child := &Child{Command: s.Command}
	defer child.Close()
	a, err := child.tell(ctx, settingsWord)
	if err != nil {
		return fmt.Errorf("reading how GPUs are set: %w", err)
	}
	for uuid, is := range a.Settings {
		if wanted(uuid) {
			known[uuid] = is
		}
	}
	return statefile.Write(s.File, remembered{BootID: s.BootID, GPUs: known})
}

// read returns what is remembered of this boot. What cannot be read is not known.
func (s *Settings) read() settingsOf {
	var m remembered
	if _, err := statefile.ReadKnown(s.File, &m); err != nil || m.BootID != s.BootID || m.GPUs == nil {
		return settingsOf{}
	}
	return m.GPUs
}

// Restore sets GPUs as they were, and reads that back. MIG devices have no settings of their own. Where it is not known
// how they were, as where the driver came after the daemon, how they are now is remembered. Where the driver cannot be
// asked, or does not let the daemon, that is said: no holder may either. The error says what is still otherwise.
func (s *Settings) Restore(ctx context.Context, uuids []string) (said string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, wanted, unknown := s.read(), settingsOf{}, false
	for _, uuid := range uuids {
		switch is := known[uuid]; {
		case is != nil:
			wanted[uuid] = is
		case strings.HasPrefix(uuid, "GPU-"):
			unknown = true
		}
	}
	if unknown {
		if err := s.remember(ctx, known, func(uuid string) bool { return known[uuid] == nil }); err != nil {
			return "settings not known: " + err.Error(), nil //nolint:nilerr // it is told, and is no dirt
		}
	}
	switch {
	case len(wanted) > 0:
		return s.restore(ctx, wanted)
	case unknown:
		return "settings were not known before", nil
	}
	return "", nil
}

func (s *Settings) restore(ctx context.Context, wanted settingsOf) (said string, err error) {
	text, err := json.Marshal(wanted)
	if err != nil {
		return "", fmt.Errorf("encoding how GPUs are to be set: %w", err)
	}
	child := &Child{Command: s.Command}
	defer child.Close()
	a, err := child.tell(ctx, restoreWord+" "+string(text))
	if err != nil {
		return "settings not read: " + err.Error(), nil //nolint:nilerr // it is told, and is no dirt
	}
	return describeRestored(a.Restored)
}

func describeRestored(all []Restored) (said string, err error) {
	changed, barred, unread := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range all {
		if r.Wrong != "" {
			err = errors.Join(err, fmt.Errorf("GPU %s is not set as before: %s", r.UUID, r.Wrong))
		}
		for _, c := range r.Changed {
			changed[c] = true
		}
		for _, b := range r.Barred {
			barred[b] = true
		}
		if r.Why != "" {
			unread[r.Why] = true
		}
	}
	if err != nil {
		return "", err
	}
	var parts []string
	for _, of := range []struct {
		what  string
		names map[string]bool
	}{{"settings not read: ", unread}, {"set as before: ", changed},
		{"not set as before, which the daemon may not: ", barred}} {
		if len(of.names) > 0 {
			parts = append(parts, of.what+strings.Join(slices.Sorted(maps.Keys(of.names)), ", "))
		}
	}
	return cmp.Or(strings.Join(parts, "; "), "settings as before"), nil
}
