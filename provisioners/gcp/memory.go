//go:build clouds

package gcp

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/provisioners"
)

// stateVersion changes when an older program could misread the file.
const stateVersion = 1

const (
	// tokenMemory is how long an ended machine's token is known.
	tokenMemory = 24 * time.Hour
	// unseenMemory is how long a machine is remembered that nobody asked about.
	unseenMemory = 30 * 24 * time.Hour
)

// memory is what is known of machines beyond what Google remembers. It is a
// guard behind the guards: without it a token is known for as long as Google
// keeps its operations.
type memory struct {
	path  string
	clock clock.Clock

	mu      sync.Mutex
	records map[string]*record // by token
	dirty   bool               // the file is older than the map
}

// record is one machine that was answered.
type record struct {
	Token   string
	ID      string
	Ask     provisioners.Spec
	Created time.Time
	Ended   time.Time // Google's time of its end; zero when not known
	Gone    time.Time // when its end was first seen; zero while it stands
	Seen    time.Time // when it was last seen, to the day
}

type state struct {
	Version int
	Records []*record
}

func openMemory(path string, clock clock.Clock) (*memory, error) {
	m := &memory{path: path, clock: clock, records: map[string]*record{}}
	if path == "" {
		return m, nil
	}
	var saved state
	found, err := statefile.Read(path, &saved)
	if err != nil || !found {
		return m, err
	}
	if saved.Version != stateVersion {
		return nil, fmt.Errorf("state file %s has version %d, this program reads %d", path, saved.Version, stateVersion)
	}
	for _, r := range saved.Records {
		if r == nil || r.Token == "" || m.records[r.Token] != nil {
			return nil, fmt.Errorf("state file %s is damaged: a record without a token, or one that is there twice",
				path)
		}
		if _, valid := parseRef(r.ID); !valid {
			return nil, fmt.Errorf("state file %s is damaged: %q is not the id of a machine", path, r.ID)
		}
		m.records[r.Token] = r
	}
	return m, nil
}

// byToken returns the machine that the token stands for.
func (m *memory) byToken(token string) (record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.records[token]; r != nil {
		return *r, true
	}
	return record{}, false
}

// byID returns the machine with the id.
func (m *memory) byID(id string) (record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.ID == id {
			return *r, true
		}
	}
	return record{}, false
}

// rememberInstances remembers machines that the provider has shown.
func (m *memory) rememberInstances(machines ...provisioners.Instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	for _, i := range machines {
		if i.Token != "" {
			m.rememberInstance(i, now)
		}
	}
}

// rememberInstance is for a machine with a token. The first machine of a token stays its
// machine: there is no second.
func (m *memory) rememberInstance(i provisioners.Instance, now time.Time) {
	known := m.records[i.Token]
	if known == nil {
		place, _ := parseRef(i.ID)
		known = &record{
			Token: i.Token, ID: i.ID, Created: i.CreatedAt,
			Ask: provisioners.Spec{Type: i.Type, Region: place.zone, Owner: i.Owner, NodeID: i.NodeID},
		}
		m.records[i.Token] = known
	}
	if known.ID != i.ID {
		return
	}
	if day := now.Truncate(24 * time.Hour); known.Seen.Before(day) {
		known.Seen, m.dirty = day, true
	}
	if known.Ended.IsZero() && !i.EndedAt.IsZero() {
		known.Ended, m.dirty = i.EndedAt, true
	}
}

// rememberGone remembers the end of a machine, from which on nothing more is asked about
// it once the time of the end is known.
func (m *memory) rememberGone(id string, ended time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.ID != id {
			continue
		}
		if r.Gone.IsZero() {
			r.Gone, m.dirty = m.clock.Now(), true
		}
		if r.Ended.IsZero() && !ended.IsZero() {
			r.Ended, m.dirty = ended, true
		}
	}
}

// saveRecords makes what was learnt durable. What could not be saved stays unsaved, and
// the next call tries again.
func (m *memory) saveRecords() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirty {
		return nil
	}
	m.dropOldRecords()
	if m.path != "" {
		saved := state{Version: stateVersion}
		for _, r := range m.records {
			saved.Records = append(saved.Records, r)
		}
		slices.SortFunc(saved.Records, func(a, b *record) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Token, b.Token))
		})
		if err := statefile.Write(m.path, saved); err != nil {
			return err
		}
	}
	m.dirty = false
	return nil
}

func (m *memory) dropOldRecords() {
	now := m.clock.Now()
	for token, r := range m.records {
		ended := !r.Gone.IsZero() && now.Sub(r.Gone) > tokenMemory
		if ended || r.Gone.IsZero() && now.Sub(r.Seen) > unseenMemory {
			delete(m.records, token)
		}
	}
}

// portInstance is a machine of which only the record is left.
func (r record) portInstance() provisioners.Instance {
	return provisioners.Instance{
		ID: r.ID, Token: r.Token, Owner: r.Ask.Owner, NodeID: r.Ask.NodeID, Type: r.Ask.Type,
		Phase: provisioners.Terminated, CreatedAt: r.Created, EndedAt: r.Ended,
	}
}
