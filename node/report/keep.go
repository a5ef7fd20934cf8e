package report

import (
	"reflect"
	"time"

	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/node/watch"
)

// keepIdentity stores a key that is not stored yet. That it cannot is told with the look:
// the daemon works on, and has to join anew once it ends.
func (r *Reporter) keepIdentity() {
	if !r.unsaved {
		return
	}
	err := r.state.SaveIdentity(r.id)
	r.unsaved = err != nil
	r.noteState(err)
}

// keepWelcome stores that the server has heard this daemon, for whoever has begun it in the place of another.
func (r *Reporter) keepWelcome() {
	if r.welcomed {
		return
	}
	err := statefile.Write(r.state.welcomeFile(), Welcome{Version: r.Version, BootID: r.BootID, Epoch: r.Epoch})
	r.welcomed = err == nil
	r.noteState(err)
}

// keepHealth stores what is known of the GPUs, if that has changed but for the times of
// looks.
func (r *Reporter) keepHealth() {
	m := r.watcher.Memory()
	if same(m, r.saved) {
		return
	}
	err := r.state.SaveHealth(m)
	if r.noteState(err); err == nil {
		r.saved = m.Copy()
	}
}

func (r *Reporter) noteState(err error) {
	r.stateLost = ""
	if err != nil {
		r.stateLost = "the state folder cannot be written: " + err.Error()
		r.Log.Error("the state folder cannot be written", "error", err)
	}
}

// same reports whether nothing that matters after a restart has changed.
func same(a, b watch.Memory) bool { return reflect.DeepEqual(essence(a), essence(b)) }

func essence(m watch.Memory) watch.Memory {
	m = m.Copy()
	m.KernelSeq = 0
	for uuid, t := range m.Tracks {
		t.Missed, t.Slow = 0, nil
		for i := range t.Faults {
			t.Faults[i].Last = time.Time{}
		}
		m.Tracks[uuid] = t
	}
	return m
}
