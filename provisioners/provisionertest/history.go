package provisionertest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
)

const (
	usualHistories = 20
	historySteps   = 40
	historyTokens  = 4
)

// testHistories plays random calls, faults and restarts against a model of what the
// control plane may rely on. A seed is a history: it is named when it fails.
func testHistories(t *testing.T, harness Harness) {
	count := usualHistories
	for seed := 0; seed < count; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := &history{t: t, s: harness.New(t), chance: rand.New(rand.NewPCG(uint64(seed), 1)),
				ids: map[string]string{}, deleted: map[string]bool{}}
			if h.s.Histories > 0 {
				count = h.s.Histories
			}
			h.playSteps()
		})
	}
}

// history is one play, with what the model knows.
type history struct {
	t       *testing.T
	s       Subject
	chance  *rand.Rand
	ids     map[string]string // by token: the only machine that it may ever have
	deleted map[string]bool   // by id: its end was accepted, with nothing wrong
}

func (h *history) playSteps() {
	stands := func() bool { return true }
	if h.s.Foreign != nil {
		stands = h.s.Foreign()
	}
	for range historySteps {
		h.playStep()
		h.checkModel()
	}
	h.deleteAll()
	require.True(h.t, stands(), "somebody else's machine was ended")
}

// playStep makes one random call, often one that goes wrong. What the call answers
// is not trusted beyond its kind: that is what the model is for.
func (h *history) playStep() {
	n := h.chance.IntN(min(historyTokens, h.s.Machines))
	switch h.chance.IntN(10) {
	case 0, 1, 2:
		h.injectFault(h.s.TimeOutCreate, h.s.FailCreate)
		h.createInstance(n)
	case 3, 4:
		h.deleteInstance(h.ids[tokenOf(n)])
	case 5:
		h.injectFault(h.s.TruncateList)
		_, _ = h.s.List(h.t.Context(), owner)
	case 6:
		h.s.Provisioner = h.s.Reopen(h.t)
	case 7:
		if id := h.ids[tokenOf(n)]; id != "" && h.s.Reclaim != nil {
			h.s.Reclaim(id)
		}
	default:
		h.s.Advance(h.s.BootWithin / steps * 4)
	}
}

// injectFault injects one of the faults that the provider has, half of the time. A
// fault hits the next call of its kind, which the caller makes at once.
func (h *history) injectFault(faults ...func()) {
	chosen := faults[h.chance.IntN(len(faults))]
	if h.chance.IntN(2) == 0 && chosen != nil {
		chosen()
	}
}

func tokenOf(n int) string { return fmt.Sprint("token-", n) }

func (h *history) createInstance(n int) {
	made, err := h.s.Create(h.t.Context(), tokenOf(n), h.s.specWithTags(owner, fmt.Sprint("nod_", n)))
	if err != nil {
		kind := provisioners.KindOf(err)
		require.Contains(h.t, []provisioners.Kind{
			provisioners.KindUnknown, provisioners.KindTransient, provisioners.KindThrottled, provisioners.KindCapacity,
		}, kind, "%v", err)
		return
	}
	h.checkToken(made)
	require.False(h.t, h.deleted[made.ID] && !isEnding(made), "a late duplicate brought machine %s back", made.ID)
}

// checkToken holds a machine against what was known of its token.
func (h *history) checkToken(made provisioners.Instance) {
	before, known := h.ids[made.Token]
	require.True(h.t, !known || before == made.ID, "token %s made %s and %s", made.Token, before, made.ID)
	h.ids[made.Token] = made.ID
}

// deleteInstance deletes a machine, with a fault only where one stands: of another, an
// adapter may not have to ask its provider, and the fault would wait for the
// next.
func (h *history) deleteInstance(id string) {
	before, err := h.s.Get(h.t.Context(), id)
	if err != nil || isEnding(before) {
		require.NoError(h.t, h.s.Delete(h.t.Context(), id))
		return
	}
	lied := false
	ignore := func() { h.s.IgnoreDelete(); lied = true }
	if h.s.IgnoreDelete == nil {
		ignore = nil
	}
	h.injectFault(h.s.TimeOutDelete, h.s.FailDelete, ignore)
	if h.s.Delete(h.t.Context(), id) == nil && !lied {
		h.deleted[id] = true
	}
}

// checkModel reads the world, without faults, and holds it against the model.
func (h *history) checkModel() {
	list, err := h.s.List(h.t.Context(), owner)
	require.NoError(h.t, err)
	require.True(h.t, list.Complete)
	seen := map[string]bool{}
	for _, instance := range list.Instances {
		require.Equal(h.t, owner, instance.Owner)
		h.checkToken(instance)
		require.False(h.t, seen[instance.ID], "%s is listed twice", instance.ID)
		seen[instance.ID] = true
		require.False(h.t, h.deleted[instance.ID] && !isEnding(instance), "%s was deleted and stands", instance.ID)
	}
	for _, id := range h.ids {
		got, err := h.s.Get(h.t.Context(), id)
		if err != nil {
			requireKind(h.t, provisioners.KindNotFound, err)
			require.False(h.t, seen[id], "%s is listed and denied", id)
			continue
		}
		require.True(h.t, isEnding(got) || seen[id], "%s stands and is not listed", id)
	}
}

// deleteAll deletes everything until nothing is left, which must be possible from
// wherever a history ends.
func (h *history) deleteAll() {
	for _, id := range h.ids {
		require.NoError(h.t, h.s.Delete(h.t.Context(), id))
		h.s.awaitGone(h.t, id)
	}
	require.Zero(h.t, h.s.countLive(h.t, owner))
	require.Zero(h.t, h.s.countLive(h.t, ""))
}
