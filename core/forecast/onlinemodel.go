package forecast

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
)

// OnlineModel predicts for any number of tenant classes, and learns from all of them
// what is alike. Times are Unix seconds. The same calls give the same numbers,
// and no number depends on anything later than its call. An OnlineModel is not safe for
// concurrent use.
type OnlineModel struct {
	model   *model
	pace    int64 // of its clock: see Pace
	hidden  []Part
	tenants map[string]*Tenant
}

// maxClasses bounds the tenant classes of an OnlineModel.
const maxClasses = 10_000

// ErrClasses says that an OnlineModel has as many tenant classes as it may.
var ErrClasses = errors.New("too many tenant classes")

// NewOnlineModel returns an OnlineModel that begins with what the prior knows.
func NewOnlineModel(p Prior, options ...Option) *OnlineModel {
	f := &OnlineModel{model: newModel(), pace: 1, tenants: map[string]*Tenant{}}
	for _, o := range options {
		o(f)
	}
	if len(p.data) > 0 {
		if err := f.model.network.decode(p.data); err != nil { // it was read before
			f.model = newModel()
		}
	}
	return f
}

// Tenant returns the class of that name, which is made if it is new.
func (f *OnlineModel) Tenant(name string) (*Tenant, error) {
	if t, ok := f.tenants[name]; ok {
		return t, nil
	}
	if len(f.tenants) >= maxClasses {
		return nil, fmt.Errorf("adding a tenant class to %d: %w", len(f.tenants), ErrClasses)
	}
	t := &Tenant{fleet: f, name: name, number: len(f.tenants)}
	f.tenants[name] = t
	return t, nil
}

// Tenant is one tenant class of an OnlineModel: jobs that share GPUs.
type Tenant struct {
	fleet    *OnlineModel
	name     string
	number   int
	shadows  []*Shadows
	past     past
	next     successors
	looked   int64 // second of the last look
	taken    int64 // second of the last example
	examples []*example
	unseen   int // examples whose first ten minutes have not passed: the last ones
	arrivals []submission
	spare    []*example
	count    int // looks
}

// exampleEvery is the least number of seconds between two looks of one tenant
// that are learned from, and maxExamples the most that wait.
const (
	exampleEvery = 15
	maxExamples  = 1024
)

// Submit tells that a job of so many GPUs arrived. It fails with ErrGPUs or
// ErrTime, or if at lies before what was told last, and then nothing has
// changed.
func (t *Tenant) Submit(at int64, gpus int) error { return t.SubmitAs(at, gpus, Traits{}) }

// SubmitAs is Submit of a job of which more is known.
func (t *Tenant) SubmitAs(at int64, gpus int, as Traits) error {
	if err := t.checkEvent(at, gpus); err != nil {
		return fmt.Errorf("counting an arrival: %w", err)
	}
	at *= t.fleet.pace
	for _, s := range t.shadows {
		s.submit(at, int32(gpus))
	}
	t.giveUpAwaiting(at)
	if gpus = t.next.submit(at, gpus, as); gpus > 0 {
		t.past.countArrival(at, gpus)
		t.arrivals = append(t.arrivals, submission{at, t.past.Demand, gpus})
	}
	return nil
}

// End tells that a job that was submitted ended, or was withdrawn, and when it had found its GPUs: when it was
// submitted, if that is not known. It fails as Submit does.
func (t *Tenant) End(at int64, gpus int, submitted, started int64) error {
	return t.EndAs(at, gpus, submitted, started, Traits{})
}

// EndAs is End of a job that SubmitAs told of.
func (t *Tenant) EndAs(at int64, gpus int, submitted, started int64, as Traits) error {
	if err := t.checkEvent(at, gpus); err != nil {
		return fmt.Errorf("counting an end: %w", err)
	}
	waited := max(0, min(started, at)-submitted) * t.fleet.pace
	for _, s := range t.shadows {
		s.end(at*t.fleet.pace, submitted*t.fleet.pace, waited, int32(gpus))
	}
	at *= t.fleet.pace
	t.giveUpAwaiting(at)
	age := max(0, at-submitted*t.fleet.pace)
	t.past.countDuration(age)
	if gpus = t.next.end(at, gpus, as); gpus > 0 {
		t.past.countEnd(at, gpus, age, waited, t.arrivedAfter(at-waited))
	}
	return nil
}

// giveUpAwaiting takes GPUs that are not likely to be used again for free.
func (t *Tenant) giveUpAwaiting(now int64) {
	if gpus, since := t.next.passTo(now); gpus > 0 {
		t.past.countEnd(now, gpus, now-since, 0, 0)
	}
}

// arrivedAfter counts the GPUs that arrived after a second, as far back as examples wait.
func (t *Tenant) arrivedAfter(second int64) int {
	n := 0
	for i := len(t.arrivals) - 1; i >= 0 && t.arrivals[i].at > second; i-- {
		n += t.arrivals[i].gpus
	}
	return n
}

// latest is the year 2200.
const latest = 7_258_118_400

func (t *Tenant) checkEvent(at int64, gpus int) error {
	switch {
	case gpus < 1 || gpus > MaxJob:
		return fmt.Errorf("%d GPUs: %w", gpus, ErrGPUs)
	case at < 0 || at >= latest:
		return fmt.Errorf("second %d: %w", at, ErrTime)
	case at*t.fleet.pace < t.past.Last:
		return fmt.Errorf("second %d lies before second %d: %w", at, t.past.Last/t.fleet.pace, ErrOrder)
	default:
		return nil
	}
}

// ErrOrder says that something was told too late to count.
var ErrOrder = errors.New("told out of order")

// Demand returns the GPUs of jobs that were submitted and have not ended.
func (t *Tenant) Demand() int { return max(0, t.past.Demand-int(t.next.Kept)) }

// Bytes returns how much memory is kept of the tenant from look to look, without
// the looks that wait for what comes of them, and without Shadows.
func (t *Tenant) Bytes() int {
	return sizeOf(t.past) + sizeOf(t.next) + len(t.past.Steps)*sizeOf(stair(0)) + maxHabits*sizeOf(habit{})
}

func sizeOf(x any) int { return int(reflect.TypeOf(x).Size()) }

// Lasts returns how many seconds, from arrival to end, the share quantile of the
// jobs that ended lately took at most: an estimate to a doubling; 0 if none has
// ended.
func (t *Tenant) Lasts(quantile float64) float64 {
	return t.past.durationQuantile(quantile) / float64(t.fleet.pace)
}

// Observe returns what is to be expected from now on. What earlier looks came to is
// learned from on the way. A second that lies before what was told last counts as
// that one.
func (t *Tenant) Observe(now int64) Outlook {
	now = max(now*t.fleet.pace, t.past.Last)
	t.giveUpAwaiting(now)
	t.past.fadeTo(now)
	t.learnUntil(now)
	e := t.newExample()
	e.at, e.demand = now, t.past.Demand
	t.past.fillFeatures(now, &e.look)
	e.look.hideParts(t.fleet.hidden)
	t.fillChances(e)
	o := Outlook{Demand: t.Demand(), awaited: t.next.expected(now), pace: float64(t.fleet.pace), bins: e.bins,
		chances: e.said, hazard: e.odds}
	t.keepExample(e)
	t.looked = now
	o.enforceOrder()
	return o
}

// faint is the chance of being needed within 20 minutes below which higher levels are not
// looked at, but for every thoroughly-th look.
const (
	faint      = 0.006
	faintOdds  = -5.1 // of the hazard: the same
	faintKnot  = 4
	thoroughly = 16
)

// fillChances fills in the chances, and how many bins have one.
func (t *Tenant) fillChances(e *example) {
	m := t.fleet.model
	m.network.prepareInputs(&e.look)
	t.count++
	for e.bins = 0; e.bins < bins; e.bins++ {
		said := &e.said[e.bins]
		t.past.seeBin(e.at, e.bins, &e.look.bin[e.bins])
		e.look.hideParts(t.fleet.hidden)
		m.crossFeatures.findFeatures(&e.look, e.bins, t.number)
		e.odds[e.bins] = m.chancesOf(&e.look, e.bins, said)
		if said[faintKnot] < faint && e.odds[e.bins] < faintOdds && t.count%thoroughly != 0 {
			return
		}
	}
}

func (t *Tenant) newExample() *example {
	if n := len(t.spare); n > 0 {
		e := t.spare[n-1]
		t.spare = t.spare[:n-1]
		return e
	}
	return &example{}
}

// keepExample lets e wait for what comes of it.
func (t *Tenant) keepExample(e *example) {
	if n := len(t.examples); n > 0 {
		last := t.examples[n-1]
		last.lasted = e.at - last.at
		if e.at-t.taken < exampleEvery || n >= maxExamples {
			t.spare = append(t.spare, e)
			return
		}
	}
	t.taken = e.at
	t.examples = append(t.examples, e)
	t.unseen++
}

// learnUntil takes what has come true into the tenant's record and into the model.
func (t *Tenant) learnUntil(now int64) {
	for t.unseen > 0 {
		e := t.examples[len(t.examples)-t.unseen]
		if e.at+seenKnot > now || t.unseen == 1 { // the last one has not lasted yet
			break
		}
		hit := e.neededBins(t.arrivals)
		t.past.countOutcome(&hit, e.lasted)
		t.unseen--
	}
	done := 0
	for done < len(t.examples)-t.unseen && t.examples[done].at+longestKnot <= now {
		t.teachModel(t.examples[done])
		done++
	}
	if done > 0 {
		t.spare = append(t.spare, t.examples[:done]...)
		t.examples = slices.Delete(t.examples, 0, done)
		t.forgetArrivals(now)
	}
}

func (t *Tenant) teachModel(e *example) {
	e.closeWith(t.arrivals)
	m := t.fleet.model
	for b := range min(bins, e.bins+1) {
		if b%4 == 0 {
			m.network.observeInputs(&e.look, b)
		}
		m.learnBin(e, b, t.number)
	}
}

// forgetArrivals drops the arrivals that no example waits for.
func (t *Tenant) forgetArrivals(now int64) {
	oldest := now
	if len(t.examples) > 0 {
		oldest = t.examples[0].at
	}
	n := 0
	for n < len(t.arrivals) && t.arrivals[n].at <= oldest {
		n++
	}
	t.arrivals = slices.Delete(t.arrivals, 0, n)
}

// looks are the seconds after the last event at which another look is worth it:
// what is known changes with the logarithm of the time without events.
var looks = [...]int64{15, 30, 60, 90, 120, 180, 240, 300, 360, 480, 600}

// After the last of looks, what is held is let go as its chances fade, and what may change is what the hour and the
// time of day say: for a day it is looked at every lookOften seconds, and until lookFor every lookEvery. From
// knownAfter on, a time at which something came a day or an hour before is looked forward to, besides: what the
// clock starts comes after a silence.
const (
	knownAfter   = 300
	lookOften    = 120
	lookOftenFor = 86400
	lookEvery    = 1800
	lookFor      = 7 * 86400
)

// Next returns the second, after now, of the next look that may say something
// else if nothing happens before: math.MaxInt64 if none will. An event calls for
// a look at once.
func (t *Tenant) Next(now int64) int64 {
	next := t.nextByClock(now * t.fleet.pace)
	if next == math.MaxInt64 {
		return next
	}
	return max(now+1, next/t.fleet.pace)
}

// nextByClock is Next by the model's own clock.
func (t *Tenant) nextByClock(now int64) int64 {
	since := now - t.past.Last
	if e := max(t.past.Submitted, t.past.EndedAt); e > 0 {
		since = now - e
	}
	next := now + lookEvery
	switch {
	case since >= lookFor || t.past.Jobs == 0:
		return math.MaxInt64
	case since < looks[len(looks)-1]:
		i := sort.Search(len(looks), func(i int) bool { return looks[i] > since })
		next = now - since + looks[i]
	case since < lookOftenFor:
		next = now + lookOften
	}
	if since >= knownAfter {
		next = t.past.Slots.nextKnown(now, next)
	}
	for _, s := range t.shadows {
		next = t.past.Table.next(now, next, leadOf(s.experts.boot+s.experts.late))
	}
	return next
}
