package jobs

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/runtimes"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

const (
	mostRuns  = 200 // that are read of a name, and of an organization
	mostNames = 32  // of an organization of which that is read; jobs of more names are compared with all of its jobs
)

// asked is what a prediction depends on that is not the history.
type asked struct {
	organization string
	runtimes.Subject
}

// predictor predicts for how long jobs run. It reads what was run of each name once.
type predictor struct {
	r     ledger.Reader
	runs  *txn.JobMemory // nil: what is read is of now
	all   map[string][]runtimes.Run
	named map[[2]string][]runtimes.Run
	names map[string]int // read of each organization
	known map[asked]runtimes.Prediction
}

func newPredictor(r ledger.Reader) *predictor {
	return &predictor{r: r, all: map[string][]runtimes.Run{}, named: map[[2]string][]runtimes.Run{},
		names: map[string]int{}, known: map[asked]runtimes.Prediction{}}
}

// of predicts for how long an attempt of a job runs in all. The zero Prediction: too few were run.
func (p *predictor) of(j job.Job) (runtimes.Prediction, error) {
	h, err := p.historyOf(j)
	if err != nil {
		return runtimes.Prediction{}, err
	}
	what := asked{j.OrganizationID, runtimes.SubjectOf(j, p.r.Now())}
	if len(h.Named) == 0 {
		what.Name = "" // jobs of new names are alike: a queue may have thousands
	}
	if is, found := p.known[what]; found {
		return is, nil
	}
	is, _ := runtimes.Predict(h, what.Subject)
	p.known[what] = is
	return is, nil
}

func (p *predictor) historyOf(j job.Job) (h runtimes.History, err error) {
	org, named := j.OrganizationID, [2]string{j.OrganizationID, j.Name}
	var found bool
	if h.All, found = p.all[org]; !found {
		if h.All, err = p.read(org, ""); err != nil {
			return h, err
		}
		p.all[org] = h.All
	}
	if h.Named, found = p.named[named]; !found && j.Name != "" && p.names[org] < mostNames && len(h.All) > 0 {
		p.names[org]++
		if h.Named, err = p.read(org, j.Name); err != nil {
			return h, err
		}
		p.named[named] = h.Named
	}
	return h, nil
}

func (p *predictor) read(organizationID, name string) ([]runtimes.Run, error) {
	read := func() ([]runtimes.Run, error) { return p.r.JobRuns(organizationID, name, mostRuns) }
	if p.runs == nil {
		return read()
	}
	return p.runs.Runs(organizationID, name, p.r.Now(), read)
}

// noHistory is why nothing is predicted of a job that nothing is known of.
const noHistory = "fewer than three jobs of its organization have run"

// PredictEnd predicts when a job ends that has begun to run; nil: that cannot be said, and why.
func (l Jobs) PredictEnd(r ledger.Reader, j job.Job) (end *ledger.PredictedTime, why string, err error) {
	if j.State() != job.Running || j.Ending.Is() {
		return nil, "", nil
	}
	p, err := newPredictor(r).of(j)
	if err != nil {
		return nil, "", fmt.Errorf("predicting the end of job %s: %w", j.ID, err)
	}
	if !p.Known() {
		return nil, noHistory, nil
	}
	at := j.StartedAt
	return &ledger.PredictedTime{Band: ledger.Band{P10: at.Add(p.P10), P50: at.Add(p.P50), P90: at.Add(p.P90)},
		Basis: p.Basis}, "", nil
}

// expect predicts for how long those run that wait, which decides on their turn, and when those have ended that may
// leave for others, which decides whether they are waited for.
func (q *queue) expect(r ledger.Reader, runs *txn.JobMemory, waiting []job.Job) error {
	by := newPredictor(r)
	by.runs = runs // a schedule of every moment reads no history
	for _, j := range waiting {
		is, err := by.of(j)
		if err != nil {
			return err
		}
		q.expected[j.ID] = is
	}
	for id, j := range q.holders {
		if !mayLeave(j, id, q.rules, q.now) {
			continue
		}
		rest, err := by.of(j)
		if err != nil {
			return err
		}
		again := j
		again.StartedAt = time.Time{}
		if q.expected[j.ID], err = by.of(again); err != nil {
			return err
		}
		if rest.Known() {
			q.ends[j.ID] = j.StartedAt.Add(rest.P50)
		}
	}
	q.typical = medianOf(q.expected)
	return nil
}

// medianOf is for how long a job runs of which nothing is known but what is of others. Who has run nothing yet would
// else have to wait for all whose jobs are known to be short.
func medianOf(expected map[string]runtimes.Prediction) time.Duration {
	var known []time.Duration
	for _, is := range expected {
		if is.Known() {
			known = append(known, is.ForTurn())
		}
	}
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[len(known)/2]
}

// noteRuntimes notes with jobs that are to start for how long they are predicted to run, so that it can be told later
// how far that was right.
func (q queue) noteRuntimes(starts []scheduler.Start) {
	for _, s := range starts {
		j, is := q.jobs[s.Job], q.expected[s.Job]
		j.Predicted = job.Predicted{P10: is.P10, P50: is.P50, P90: is.P90}
		q.jobs[s.Job] = j
	}
}

// describeTurn says what decides about a job's place in the order of its pool, beside its wait and its GPUs.
func describeTurn(q queue, s *scheduler.Scheduler, j job.Job) (all []string) {
	p := q.rules.Policy(nil)
	if p.Order == scheduler.Balanced || p.Order == scheduler.ShortestPredicted {
		all = append(all, q.describeLength(j))
	}
	if p.Order == scheduler.Balanced && p.ShareWeight > 0 || p.Order == scheduler.Multifactor {
		all = append(all, describeShares(p.MostExcess, s, j.ID)...)
	}
	return all
}

// noticeable is how many times a fair share somebody must have had before it is worth a word.
const noticeable = 1.05

// describeShares says what was had lately that counts against a job, if anything does.
func describeShares(most float64, s *scheduler.Scheduler, id string) (all []string) {
	ofTenant, ofUser := scheduler.Excess(s, id)
	if ofTenant >= noticeable {
		all = append(all, fmt.Sprintf("its organization has lately had %.1f times its fair share of the pool", ofTenant))
	}
	if times := fmt.Sprintf("%.1f times", ofUser); ofUser >= noticeable {
		if ofUser >= most {
			times = "many times" // more makes no difference
		}
		all = append(all, "who submitted it has lately had "+times+" as much of the pool as the others of the "+
			"organization whose jobs wait")
	}
	return all
}

// describeLength says as how long a job counts in the order of its pool, and why.
func (q queue) describeLength(j job.Job) string {
	if is := q.expected[j.ID]; is.Known() {
		return "it counts as " + phrase.Length(is.ForTurn().Round(time.Second)) + " long, by " + is.Basis
	}
	if q.typical > 0 && q.typical < j.MaxRuntime {
		return "it counts as " + phrase.Length(q.typical.Round(time.Second)) + " long, as others here usually are, " +
			"since too few jobs like it have ended"
	}
	return "it counts as long as its limit, " + phrase.Length(j.MaxRuntime) + ", since too few jobs like it have ended"
}
