package jobs

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/core/job"
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
	what := asked{j.OrganizationID, runtimes.SubjectOf(j, p.r.Now())}
	if is, found := p.known[what]; found {
		return is, nil
	}
	h, err := p.historyOf(j)
	if err != nil {
		return runtimes.Prediction{}, err
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
const noHistory = "fewer than three jobs of its organization have ended by themselves"

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

// noteRuntimes notes with jobs that are to start for how long they are predicted to run, so that it can be told later
// how far that was right.
func (l Jobs) noteRuntimes(ctx context.Context, q queue, starts []scheduler.Start) error {
	if len(starts) == 0 {
		return nil
	}
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		by := newPredictor(r)
		by.runs = l.LiveJobs // a schedule of every moment reads no history
		for _, s := range starts {
			j := q.jobs[s.Job]
			is, err := by.of(j)
			if err != nil {
				return err
			}
			j.Predicted = job.Predicted{P10: is.P10, P50: is.P50, P90: is.P90}
			q.jobs[s.Job] = j
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("predicting how long jobs run: %w", err)
	}
	return nil
}
