package slurm

import (
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/provisioners"
)

// tokenMemory is how long the token of a machine that ended is known. Slurm
// itself forgets a job after MinJobAge, five minutes by default.
const tokenMemory = 25 * time.Hour

// memory is what Slurm forgets: which token made which job. A live job's own
// comment is the truth; memory speaks only of jobs that Slurm does not show.
type memory struct {
	path  string
	clock clock.Clock

	mu    sync.Mutex
	known map[string]memo // by token
	dirty bool            // the file is older than known
}

// memo is one machine, alive or not.
type memo struct {
	ID, Token, Owner, NodeID, Type string
	Created                        time.Time
	Ended                          time.Time // as Slurm said; zero when it did not
	Preempted                      bool      `json:",omitempty"`
	Known                          time.Time // since when we know of it
	Gone                           time.Time // since when we know of its end; zero while it lives
}

func openMemory(path string, clock clock.Clock) (*memory, error) {
	m := &memory{path: path, clock: clock, known: map[string]memo{}}
	var err error
	m.known, err = m.readFile()
	return m, err
}

// byToken returns what is known of a token.
func (m *memory) byToken(token string) (memo, bool) {
	return m.findMemo(func(o memo) bool { return o.Token == token })
}

// byID returns what is known of a machine.
func (m *memory) byID(id string) (memo, bool) {
	return m.findMemo(func(o memo) bool { return o.ID == id })
}

// findMemo reads the file again when it does not know: another process of ours may
// have written it.
func (m *memory) findMemo(wanted func(memo) bool) (memo, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range 2 {
		for _, o := range m.known {
			if wanted(o) && !m.isOld(o) {
				return o, true
			}
		}
		fresh, err := m.readFile()
		if err != nil {
			return memo{}, false // the file was whole when it was opened; a write will say what is wrong
		}
		m.known = mergeMemos(m.known, fresh)
	}
	return memo{}, false
}

// rememberJobs takes in machines as Slurm shows them.
func (m *memory) rememberJobs(jobs []job) error {
	now := m.clock.Now()
	memos := make([]memo, len(jobs))
	for i, j := range jobs {
		memos[i] = memo{ID: instanceID(j.id, j.mark), Token: j.tags.token, Owner: j.tags.owner, NodeID: j.tags.node,
			Type: j.tags.kind, Created: j.submitted}
		if j.phase == provisioners.Terminated {
			memos[i].Ended, memos[i].Preempted, memos[i].Gone = j.endTime, j.takenBack(), now
		}
	}
	return m.rememberMemos(memos)
}

// rememberMemos takes in machines that were seen now. Of one that ended before, the first
// look that showed it counts.
func (m *memory) rememberMemos(seen []memo) error {
	now := m.clock.Now()
	return m.updateMemos(func(known map[string]memo) bool {
		changed := false
		for _, after := range seen {
			after.Known = now
			if before, seen := known[after.Token]; seen && before.ID == after.ID {
				after.Known = before.Known
				if !after.Gone.IsZero() && !before.Gone.IsZero() {
					after.Gone = before.Gone
				}
			}
			if after != known[after.Token] {
				known[after.Token], changed = after, true
			}
		}
		return changed
	})
}

// endUnlisted ends what a complete view that began at begun did not show.
func (m *memory) endUnlisted(begun time.Time, shown func(id string) bool) error {
	now := m.clock.Now()
	return m.updateMemos(func(known map[string]memo) bool {
		changed := false
		for token, o := range known {
			if o.Gone.IsZero() && o.Known.Before(begun) && !shown(o.ID) {
				o.Gone = now
				known[token], changed = o, true
			}
		}
		return changed
	})
}

// rememberGone takes in that a machine has left Slurm's sight.
func (m *memory) rememberGone(o memo) error {
	if o.Gone.IsZero() {
		o.Gone = m.clock.Now()
	}
	return m.updateMemos(func(known map[string]memo) bool {
		before, still := known[o.Token]
		if !still || before.ID != o.ID || before == o {
			return false
		}
		known[o.Token] = o
		return true
	})
}

// updateMemos changes what is known. It writes nothing when the change changes
// nothing, which is the rule. What could not be written is written next time.
func (m *memory) updateMemos(change func(map[string]memo) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirty = change(m.known) || m.dirty
	if m.path == "" || !m.dirty {
		m.dirty = false
		m.dropOldMemos()
		return nil
	}
	unlock, err := lockFile(m.path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	stored, err := m.readFile()
	if err != nil {
		return err
	}
	m.known = mergeMemos(m.known, stored)
	change(m.known) // what we have just seen is newer than what another process stored
	m.dropOldMemos()
	if err := statefile.Write(m.path, memoryFile{Version: memoryVersion, Machines: m.known}); err != nil {
		return err
	}
	m.dirty = false
	return nil
}

func (m *memory) dropOldMemos() {
	for token, o := range m.known {
		if m.isOld(o) {
			delete(m.known, token)
		}
	}
}

func (m *memory) isOld(o memo) bool {
	return !o.Gone.IsZero() && m.clock.Now().Sub(o.Gone) > tokenMemory
}

// portInstance is the machine as far as it is remembered, which is after its end.
func (o memo) portInstance() provisioners.Instance {
	return provisioners.Instance{
		ID: o.ID, Token: o.Token, Owner: o.Owner, NodeID: o.NodeID, Type: o.Type,
		Phase: provisioners.Terminated, CreatedAt: o.Created, EndedAt: o.Ended, Preempted: o.Preempted,
	}
}
