package provisionertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
)

// startsWithin is what a scheduler may take to start work on an idle node.
const startsWithin = 5 * time.Second

func plainWorkStartsWarm(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	gpus := s.offered(t).GPUs
	before := s.observe(t, "")
	handle := s.Submit(PlainWork{GPUs: gpus, Nodes: 1})
	s.Advance(startsWithin)
	seen := s.observe(t, before.Mark)
	w, kept := onlyWork(t, seen), nodeOf(t, seen, made.ID)
	wait, started := w.Wait()
	require.True(t, started)
	require.LessOrEqual(t, wait, startsWithin)
	require.Equal(t, []provisioners.WorkNode{{Name: kept.Name, GPUs: gpus}}, w.Nodes)
	require.Equal(t, gpus, w.GPUs)
	require.Equal(t, s.Spec.Type, w.Type)
	require.NotEmpty(t, w.User+w.Namespace)
	require.Zero(t, w.EndedAt)
	require.Equal(t, provisioners.NodeTaken, kept.State)
	require.Equal(t, gpus, kept.GPUsTaken)
	got, err := s.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase, "a node is in keeping whatever work is on it")
	require.NoError(t, s.observer().Keep(t.Context(), []string{made.ID}))
	s.Finish(handle)
	s.Advance(startsWithin)
	after := s.observe(t, seen.Mark)
	ended := onlyWork(t, after)
	require.Equal(t, w.ID, ended.ID)
	require.True(t, w.StartedAt.Equal(ended.StartedAt))
	require.False(t, ended.EndedAt.IsZero())
	require.Equal(t, provisioners.NodeIdle, nodeOf(t, after, made.ID).State)
	require.Empty(t, s.observe(t, "").Work, "what has ended is not there now")
}

func coolingLeavesWorkAlone(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	handle := s.Submit(PlainWork{GPUs: 1, Nodes: 1})
	s.awaitStart(t)
	require.NoError(t, s.Delete(t.Context(), made.ID))
	s.awaitGone(t, made.ID)
	s.Advance(3 * s.SuspendWithin)
	require.True(t, s.Runs(handle), "cooling ended somebody's work")
	seen := s.observe(t, "")
	require.Equal(t, 1, onlyWork(t, seen).GPUs)
	for _, n := range seen.Nodes {
		require.Empty(t, n.InstanceID)
	}
}

func coldWorkIsSeen(t *testing.T, s ObserverSubject) {
	before := s.observe(t, "")
	s.Submit(PlainWork{GPUs: 1, Nodes: 1})
	s.Advance(startsWithin)
	w := onlyWork(t, s.observe(t, before.Mark))
	require.True(t, w.Waiting == provisioners.WaitBoot || !w.StartedAt.IsZero(), "it waits for %s", w.Waiting)
	started := s.awaitStart(t)
	require.Equal(t, w.ID, started.ID)
	for _, n := range s.observe(t, "").Nodes {
		require.Equal(t, n.Name == started.Nodes[0].Name, n.State == provisioners.NodeTaken)
	}
}

func workJoinsBoot(t *testing.T, s ObserverSubject) {
	made := s.createInstance(t)
	s.Advance(startsWithin)
	handle := s.Submit(PlainWork{GPUs: 1, Nodes: 1})
	s.awaitRunning(t, made.ID)
	w := s.awaitStart(t)
	require.True(t, s.Runs(handle))
	require.Len(t, w.Nodes, 1)
	require.Equal(t, provisioners.Running, s.createInstance(t).Phase)
}

func gangIsSeen(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	gpus := s.offered(t).GPUs
	s.Submit(PlainWork{GPUs: gpus, Nodes: 2})
	parts := 1
	if s.GangParts {
		parts = 2
	}
	began := func() []provisioners.Work {
		return slices.DeleteFunc(s.observe(t, "").Work, func(w provisioners.Work) bool { return w.StartedAt.IsZero() })
	}
	for range 2*steps + 1 {
		require.NoError(t, s.observer().Keep(t.Context(), []string{made.ID}))
		if work := began(); len(work) > 0 {
			require.Len(t, work, parts, "a part began before the others")
			break
		}
		s.Advance(s.BootWithin / steps)
	}
	work := began()
	require.Len(t, work, parts, "the gang did not start")
	var nodes []provisioners.WorkNode
	for _, w := range work {
		require.Equal(t, 2*gpus/parts, w.GPUs)
		require.True(t, work[0].StartedAt.Equal(w.StartedAt))
		nodes = append(nodes, w.Nodes...)
	}
	require.Len(t, nodes, 2)
	require.NotEqual(t, nodes[0].Name, nodes[1].Name)
}

func cpuWorkIsSeen(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	handle := s.Submit(PlainWork{Nodes: 1})
	s.Advance(startsWithin)
	seen := s.observe(t, "")
	require.Empty(t, seen.Work, "only work with GPUs is work")
	kept := nodeOf(t, seen, made.ID)
	require.Equal(t, provisioners.NodeTaken, kept.State)
	require.Zero(t, kept.GPUsTaken)
	s.Finish(handle)
	s.Advance(startsWithin)
	require.Equal(t, provisioners.NodeIdle, nodeOf(t, s.observe(t, ""), made.ID).State)
}

func wholeNodeWork(t *testing.T, s ObserverSubject) {
	made := s.warm(t)
	s.Submit(PlainWork{GPUs: s.offered(t).GPUs, Nodes: 1, Whole: true})
	w := s.awaitStart(t)
	require.Equal(t, nodeOf(t, s.observe(t, ""), made.ID).Name, w.Nodes[0].Name)
	wait, _ := w.Wait()
	require.LessOrEqual(t, wait, 2*startsWithin, "a heartbeat was in its way")
}

func waitingWorkSaysWhy(t *testing.T, s ObserverSubject) {
	nodes := len(s.observe(t, "").Nodes)
	if s.NodesCome {
		nodes = s.Machines
	}
	for range nodes {
		s.Submit(PlainWork{GPUs: s.offered(t).GPUs, Nodes: 1})
	}
	s.Advance(s.BootWithin)
	s.Advance(startsWithin)
	s.Submit(PlainWork{GPUs: s.offered(t).GPUs, Nodes: 1})
	s.Advance(startsWithin)
	seen := s.observe(t, "")
	require.Len(t, seen.Work, nodes+1)
	waiting := 0
	for _, w := range seen.Work {
		if w.StartedAt.IsZero() {
			waiting++
			require.Contains(t, []provisioners.Reason{provisioners.WaitResources, provisioners.WaitPriority}, w.Waiting)
			require.Empty(t, w.Nodes)
		}
	}
	require.Equal(t, 1, waiting)
}

func shortWorkIsNotMissed(t *testing.T, s ObserverSubject) {
	s.warm(t)
	before := s.observe(t, "")
	handle := s.Submit(PlainWork{GPUs: 1, Nodes: 1})
	s.Advance(startsWithin / 2)
	s.Finish(handle)
	s.Advance(startsWithin / 2)
	w := onlyWork(t, s.observe(t, before.Mark))
	require.False(t, w.StartedAt.IsZero())
	require.False(t, w.EndedAt.IsZero())
	require.NotEmpty(t, w.Nodes)
}

func forgottenIsIncomplete(t *testing.T, s ObserverSubject) {
	s.warm(t)
	before := s.observe(t, "")
	handle := s.Submit(PlainWork{GPUs: 1, Nodes: 1})
	s.Advance(startsWithin)
	s.Finish(handle)
	s.Forget()
	seen, err := s.observer().Observe(t.Context(), before.Mark)
	require.NoError(t, err)
	require.True(t, !seen.Complete || len(seen.Work) == 1, "what was missed is not said to be")
	s.observe(t, seen.Mark)
}

func markOutlivesProcess(t *testing.T, s ObserverSubject) {
	before := s.observe(t, "")
	s.Submit(PlainWork{GPUs: 1, Nodes: 1})
	first := onlyWork(t, s.observe(t, before.Mark))
	s.Provisioner = s.Reopen(t)
	require.Equal(t, first.ID, onlyWork(t, s.observe(t, before.Mark)).ID)
}

func strangeMark(t *testing.T, s ObserverSubject) {
	for _, mark := range []provisioners.Mark{"no-mark", "\x00", "-1"} {
		_, err := s.observer().Observe(t.Context(), mark)
		requireKind(t, provisioners.KindBadSpec, err)
		require.ErrorIs(t, err, provisioners.ErrForeignMark)
	}
}

func cutQueueSaysSo(t *testing.T, s ObserverSubject) {
	if lacksFault(t, s.TruncateQueue == nil) {
		return
	}
	before := s.observe(t, "")
	s.Submit(PlainWork{GPUs: 1, Nodes: 1})
	s.Submit(PlainWork{GPUs: 1, Nodes: 1})
	s.TruncateQueue()
	seen, err := s.observer().Observe(t.Context(), before.Mark)
	require.True(t, err != nil || !seen.Complete, "a row is missing, and nothing says so")
	if err == nil {
		require.Len(t, s.observe(t, seen.Mark).Work, 2, "what was missed is lost")
	}
}

// testWorkHistories plays random work beside random keeping. Every piece of work is
// submitted by the test, so that it knows what an observer must have seen.
func testWorkHistories(t *testing.T, harness ObserverHarness) {
	count := usualHistories
	for seed := 0; seed < count; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := &workHistory{t: t, s: harness.New(t), chance: rand.New(rand.NewPCG(uint64(seed), 2)),
				seen: map[string]provisioners.Work{}}
			if h.s.Histories > 0 {
				count = h.s.Histories
			}
			h.mark = h.s.observe(t, "").Mark
			for range historySteps {
				h.playStep()
				h.observe()
			}
			require.Len(t, h.seen, h.submitted, "work was missed, or seen twice")
		})
	}
}

type workHistory struct {
	t         *testing.T
	s         ObserverSubject
	chance    *rand.Rand
	mark      provisioners.Mark
	seen      map[string]provisioners.Work // by id
	submitted int
	handles   []string
	ids       []string
	tokens    int
}

func (h *workHistory) playStep() {
	switch h.chance.IntN(8) {
	case 0:
		h.tokens++
		made, err := h.s.Create(h.t.Context(), fmt.Sprint("token-", h.tokens), h.s.specWithTags(owner,
			fmt.Sprint("nod_", h.tokens)))
		if err == nil {
			h.ids = append(h.ids, made.ID)
		} else {
			requireKind(h.t, provisioners.KindCapacity, err)
		}
	case 1:
		if len(h.ids) > 0 {
			require.NoError(h.t, h.s.Delete(h.t.Context(), h.ids[0]))
			h.ids = h.ids[1:]
		}
	case 2, 3:
		h.submitted++
		h.handles = append(h.handles, h.s.Submit(PlainWork{GPUs: 1 + h.chance.IntN(h.s.offered(h.t).GPUs), Nodes: 1}))
	case 4:
		if len(h.handles) > 0 {
			h.s.Finish(h.handles[0])
			h.handles = h.handles[1:]
		}
	case 5:
		h.s.Provisioner = h.s.Reopen(h.t)
	default:
		_ = h.s.observer().Keep(h.t.Context(), h.ids) // some may have ended
		h.s.Advance(h.s.BootWithin / steps * time.Duration(1+h.chance.IntN(4)))
	}
}

// observe checks that what was seen once is never told otherwise.
func (h *workHistory) observe() {
	seen := h.s.observe(h.t, h.mark)
	h.mark = seen.Mark
	for _, w := range seen.Work {
		if before, known := h.seen[w.ID]; known && !before.StartedAt.IsZero() {
			require.True(h.t, before.StartedAt.Equal(w.StartedAt), "a start moved")
			require.Equal(h.t, before.Nodes, w.Nodes)
		}
		h.seen[w.ID] = w
	}
	kept := map[string]bool{}
	for _, n := range seen.Nodes {
		if n.InstanceID != "" {
			require.False(h.t, kept[n.InstanceID], "an instance keeps two nodes")
			require.True(h.t, slices.Contains(h.ids, n.InstanceID), "a node is kept that was cooled")
			kept[n.InstanceID] = true
		}
	}
}
