package simcluster_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

func TestObserverConformance(t *testing.T) {
	t.Parallel()
	provisionertest.RunObserver(t, provisionertest.ObserverHarness{New: newObserverSubject})
}

// newObserverSubject is a cluster of three nodes, and the suite its users.
func newObserverSubject(t *testing.T) provisionertest.ObserverSubject {
	c := testConfig()
	c.Offers = c.Offers[:1]
	c.StateFile = filepath.Join(t.TempDir(), "cluster.json")
	l := openLab(t, c)
	return provisionertest.ObserverSubject{
		Subject: provisionertest.Subject{
			Provisioner: l.Cluster,
			Reopen: func(*testing.T) provisioners.Provisioner {
				l.reopen()
				return l.Cluster
			},
			Spec: provisioners.Spec{Type: "gpu-4"}, Machines: 3,
			Advance:    func(d time.Duration) { l.clock.Advance(d) },
			BootWithin: time.Minute, GoneWithin: time.Minute,
		},
		SuspendWithin: 40 * time.Second,
		Submit: func(w provisionertest.PlainWork) string {
			return l.submit(simcluster.Job{User: "ann", GPUs: w.GPUs, Nodes: w.Nodes, CPUOnly: w.GPUs == 0,
				Exclusive: w.Whole, Length: 1000 * time.Hour})
		},
		Finish: func(id string) { require.NoError(t, l.Cancel(id)) },
		Runs: func(id string) bool {
			w := l.work("", id)
			return !w.StartedAt.IsZero() && w.EndedAt.IsZero()
		},
		Forget: func() { l.clock.Advance(8 * 24 * time.Hour) },
	}
}
