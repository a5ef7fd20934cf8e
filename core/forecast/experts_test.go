package forecast

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var dear = Prices{WaitWorth: 32, Boot: 300}

// shadowed is a class with experts that decide at every look.
type shadowed struct {
	t       testing.TB
	class   *Tenant
	shadows *Shadows
	held    Held
	target  int
}

func newShadowed(t testing.TB, f *OnlineModel, x *Experts) *shadowed {
	class, err := f.Tenant("a")
	require.NoError(t, err)
	return &shadowed{t: t, class: class, shadows: x.Class(class)}
}

func (s *shadowed) lookAt(now int64) {
	o := s.class.Observe(now)
	s.held = s.shadows.Hold(now, &o, dear, max(0, s.target-o.Demand), MaxHeld)
	s.target = o.Demand + s.held.Levels
}

// lookUntil makes the looks that are due before a second.
func (s *shadowed) lookUntil(at int64) {
	for next := s.class.Next(s.class.past.Last); next < at; next = s.class.Next(next) {
		s.lookAt(next)
	}
}

func (s *shadowed) submit(at int64, gpus int) {
	s.lookUntil(at)
	require.NoError(s.t, s.class.Submit(at, gpus))
	s.lookAt(at)
}

func (s *shadowed) end(at int64, gpus int, submitted int64) {
	s.lookUntil(at)
	require.NoError(s.t, s.class.End(at, gpus, submitted, submitted))
	s.lookAt(at)
}

// Two jobs of an hour, the second one half an hour after the first has ended.
func TestAShadowCostsWhatItsRuleWouldHaveCost(t *testing.T) {
	t.Parallel()
	s := newShadowed(t, NewOnlineModel(BuiltIn()), NewExperts())
	s.submit(origin, 2)
	s.end(origin+3600, 2, origin)
	s.submit(origin+5400, 2)
	s.end(origin+9000, 2, origin+5400)
	s.lookAt(origin + 9000 + 100)
	const boot = 2*300 + 32*300
	// A job waits for the first boot in any case. Keeping for a third of 9,900 s is enough for the second, and still
	// goes on; it fades by little.
	require.InDelta(t, 2*boot, s.shadows.state.Fleets[nothing].Cost, 0.02*2*boot)
	require.InDelta(t, boot+2*1800+2*100, s.shadows.state.Fleets[keep3].Cost, 0.02*2*boot)
	require.InDelta(t, 2*boot+2*1100, s.shadows.state.Fleets[keep9].Cost, 0.05*2*boot)
}

// A job that found its GPUs warm ends before a shadow without any would have begun it: its wait counts all the same.
func TestAShortJobsWaitIsCounted(t *testing.T) {
	t.Parallel()
	s := newShadowed(t, NewOnlineModel(BuiltIn()), NewExperts())
	s.submit(origin, 1)
	s.end(origin+60, 1, origin)
	s.lookUntil(origin + 1000)
	require.InDelta(t, 300+32*300, s.shadows.state.Fleets[nothing].Cost, 150, "and what idles until the next look")
}

// Jobs of a minute that come half an hour apart, at random, are no work for a forecast: keeping is cheaper than
// anything it says, and is what is done.
func TestWhatIsHeldFollowsTheCheaperRule(t *testing.T) {
	t.Parallel()
	s := newShadowed(t, NewOnlineModel(Prior{}), NewExperts())
	draw, now, held := rand.New(rand.NewPCG(1, 1)), int64(origin), 0
	for n := range 400 {
		s.submit(now, 1)
		s.end(now+60, 1, now)
		if n > 300 {
			held += s.held.Levels
		}
		now += 60 + int64(draw.ExpFloat64()*1740)
	}
	require.Greater(t, held, 90, "a GPU is kept nearly always")
	require.Contains(t, s.held.Explain(), " has been better for ")
	best := &s.shadows.state.Fleets[s.shadows.state.Leader]
	for i := range s.shadows.state.Fleets {
		require.LessOrEqual(t, float64(best.Cost), 1.05*float64(s.shadows.state.Fleets[i].Cost), "rule %d", i)
	}
}

func TestExpertsSurviveARestart(t *testing.T) {
	t.Parallel()
	f, x := NewOnlineModel(BuiltIn()), NewExperts()
	s := newShadowed(t, f, x)
	now := int64(origin)
	for range 50 {
		s.submit(now, 2)
		s.end(now+400, 2, now)
		now += 1700
	}
	data, err := json.Marshal(x)
	require.NoError(t, err)
	back := NewExperts()
	require.NoError(t, json.Unmarshal(data, back))
	require.Equal(t, s.shadows.state, back.Class(s.class).state)
	require.Equal(t, x.cost, back.cost)
	require.LessOrEqual(t, s.class.Bytes()+s.shadows.Bytes(), 3072)
	for _, bad := range []string{`{}`, `[]`, `{"version":9}`, `{"version":1,"boot":-1}`,
		`{"version":2,"classes":{"a":{"jobs":[{"gpus":0}]}}}`,
		`{"version":1,"classes":{"a":{"leader":99}}}`, `{"version":1,"classes":{"a":{"fleets":[{"Units":-1}]}}}`} {
		require.Error(t, json.Unmarshal([]byte(bad), back), bad)
	}
	require.Equal(t, x.cost, back.cost, "a state that cannot be changes nothing")
}

func TestTheNewestJobsWaitForWhatIsMissing(t *testing.T) {
	t.Parallel()
	var q queue
	for i := range 20 {
		q.add(origin+int64(i), 1)
	}
	q.add(origin+20, 4)
	q.add(origin+20, 4)
	require.Len(t, q, queueLength)
	for missing, want := range map[int32]float64{0: 0, 1: 1, 4: 1, 5: 2, 8: 2, 9: 3, 28: 22, 100: 22} {
		jobs, _ := q.waiting(missing)
		require.InDelta(t, want, jobs, 1e-9, "%d GPUs are missing", missing)
	}
	q.remove(origin+20, 4)
	_, since := q.waiting(4)
	require.EqualValues(t, origin+20, since)
	jobs, _ := q.waiting(5)
	require.InDelta(t, 2, jobs, 1e-9)
}

// More batches boot than there is place for: none is lost, and none takes longer.
func TestBootsThatAreTooManyBecomeOne(t *testing.T) {
	t.Parallel()
	var s shadow
	cost := 0.0
	for range 3 * shadowBoots {
		s.boot(2, 300)
		cost += s.pass(10, 32, &queue{})
	}
	require.EqualValues(t, 6*shadowBoots, s.booting()+s.Units)
	cost += s.pass(300, 32, &queue{})
	require.EqualValues(t, 6*shadowBoots, s.Units)
	s.Demand = 1
	s.follow(3, 300)
	require.EqualValues(t, 3, s.Units)
	require.Positive(t, cost)
}

// A hazard that was stored before it took back what it begins with goes on from its beginning.
func TestAStateWithAWholeBeginningIsRead(t *testing.T) {
	t.Parallel()
	f := NewOnlineModel(BuiltIn())
	runClass(t, f, 24)
	require.Less(t, f.model.crossFeatures.hazardPrior, 0.9)
	data, err := json.Marshal(f)
	require.NoError(t, err)
	var back, old OnlineModel
	require.NoError(t, json.Unmarshal(data, &back))
	require.InDelta(t, f.model.crossFeatures.hazardPrior, back.model.crossFeatures.hazardPrior, 0)
	data = bytes.Replace(data, []byte(`"version":4`), []byte(`"version":3`), 1)
	data = regexp.MustCompile(`"hazard_prior":[^,]*,`).ReplaceAll(data, nil)
	require.NoError(t, json.Unmarshal(data, &old))
	require.InDelta(t, 1, old.model.crossFeatures.hazardPrior, 0)
}

// What was stored before there was a hazard is read.
func TestAStateWithoutAHazardIsRead(t *testing.T) {
	t.Parallel()
	f := NewOnlineModel(BuiltIn())
	x, now := runClass(t, f, 24)
	data, err := json.Marshal(f)
	require.NoError(t, err)
	var old modelState
	require.NoError(t, json.Unmarshal(data, &old))
	const row, oldRow = 4 + 8*slot, 4 + 8*outputs
	var rows []byte
	for left := old.CrossFeatures; len(left) > 0; left = left[row:] {
		rows = append(rows, left[:oldRow]...)
	}
	old.Version, old.CrossFeatures = withoutHazard, rows
	data, err = json.Marshal(old)
	require.NoError(t, err)
	var back OnlineModel
	require.NoError(t, json.Unmarshal(data, &back))
	y, err := back.Tenant("a")
	require.NoError(t, err)
	require.InDelta(t, x.Observe(now+9).Chance(1, 600), y.Observe(now+9).Chance(1, 600), 0.01)
}

func TestADayIsRememberedAndForgotten(t *testing.T) {
	t.Parallel()
	p := past{Last: origin}
	p.countArrival(origin, 300)
	p.fadeTo(origin + 3600)
	require.NotZero(t, p.Slots.at(p.Last).hourAgo[0], "an hour ago")
	p.fadeTo(origin + 3600 + slotSeconds)
	require.Zero(t, p.Slots.at(p.Last).hourAgo)
	require.Zero(t, p.Slots.at(p.Last).day[0])
	known := p.Slots.nextKnown(origin+7200, origin+2*86400)
	require.InDelta(t, origin+86400-slotSeconds, known, slotSeconds, "a day ago")
	p.fadeTo(origin + 86400 - slotSeconds)
	require.EqualValues(t, 255, p.Slots.at(p.Last).day[1])
	p.fadeTo(origin + 86400)
	require.EqualValues(t, 255, p.Slots.at(p.Last).day[0])
	p.fadeTo(origin + 2*86400)
	require.Zero(t, p.Slots)
	require.EqualValues(t, origin+9*86400, p.Slots.nextKnown(p.Last, origin+9*86400))
}
