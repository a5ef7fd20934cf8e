package ssh_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		const big = 3
		l := newLab(t, big)
		theirs := func(n int) provisioners.Instance {
			spec := provisioners.Spec{Type: "big", Owner: "theirs", NodeID: "nod_1"}
			made, err := l.openFleet().Create(t.Context(), fmt.Sprint("theirs-", n), spec)
			require.NoError(t, err)
			return made
		}
		return provisionertest.Subject{
			Provisioner: l.openFleet(),
			Reopen:      func(*testing.T) provisioners.Provisioner { return l.openFleet() },
			Spec:        provisioners.Spec{Type: "big", Region: "lab"},
			OtherSpec:   provisioners.Spec{Type: "small", Region: "lab"},
			Machines:    big - 1, // one may be somebody else's
			Advance: func(d time.Duration) {
				l.clock.Advance(d)
				l.awaitDetached()
			},
			BootWithin: time.Minute, GoneWithin: time.Minute,
			TimeOutCreate: l.injectFault("claim", mute),
			TimeOutDelete: l.injectFault("end", mute),
			TruncateList:  l.refuseNext(1),
			FailCreate:    l.refuseNext(big + 1),
			FailDelete:    l.refuseNext(1),
			IgnoreDelete:  l.injectFault("end", lie),
			RunOut: func() {
				for n := range big {
					theirs(n)
				}
			},
			Foreign: func() func() bool {
				made := theirs(0)
				return func() bool {
					got, err := l.openFleet().Get(t.Context(), made.ID)
					return err == nil && (got.Phase == provisioners.Booting || got.Phase == provisioners.Running)
				}
			},
			Histories: 1, // some thousand shells
		}
	}})
}
