package predict

import (
	"math"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/evidence"
	"github.com/forewarm/forewarm/core/forecast"
)

// trust is what the Predictor knows of its sources of evidence: their track
// records, and what each tenant has heard.
type trust struct {
	records *evidence.TrackRecords
	tenants map[string]*tenantEvidence
	named   int64 // claims so far
}

// Hold is a record that the gate accepted: GPUs to keep warm in [Start, End)
// beside what statistics want.
type Hold struct {
	Start, End time.Time
	GPUs       int
	Reason     Reason
	Chance     float64 // that it is claimed
	Decision   evidence.Decision
}

// Taken is a record that was announced for the first time, or about which the gate has just decided: held or not, and
// why. Each is told once.
type Taken struct {
	Start, End     time.Time
	GPUs           int // announced
	Reason         Reason
	Stated, Chance float64           // the chance of the need as stated, and what the source's record makes of it
	DecidedAt      time.Time         // when it will be decided about; zero if it was
	Decision       evidence.Decision // without a verdict if no job was seen that bounds what may be announced
}

// Statement is what a source said of a window, and what statistics alone expected of
// it: enough to judge the source when the window is over, whether it had any say
// or not.
type Statement struct {
	Reason     Reason           `json:"reason"`
	Stated     float64          `json:"stated"`     // the chance of any need, as stated
	Chance     float64          `json:"chance"`     // what the source's record makes of it
	Weight     float64          `json:"say"`        // its weight in the forecast; 0 while demoted
	Statistics forecast.Summary `json:"statistics"` // without it
	Evidence   string           `json:"evidence"`   // hash of the lines that were read
}

func newTrust(c evidence.Config) (*trust, error) {
	book, err := evidence.New(c)
	return &trust{records: book, tenants: map[string]*tenantEvidence{}}, err
}

// UsesEvidence reports whether there is a source of evidence: then each Predict and
// Learn may change what MarshalJSON writes.
func (p *Predictor) UsesEvidence() bool { return p.forecaster != nil }

// evidenceOf returns what a tenant has heard, nil if that is nothing.
func (t *trust) evidenceOf(name string) *tenantEvidence { return t.tenants[name] }

func (p *Predictor) tenantEvidence(name string) *tenantEvidence {
	h := p.trust.tenants[name]
	if h == nil {
		h = &tenantEvidence{Watch: evidence.NewWatch(p.cfg.Terms.Boot)}
		p.trust.tenants[name] = h
	}
	return h
}

// gateClaims decides about claims whose time has come, judges those whose time is over
// and returns what is to be held now, and what was decided. statistics is how many GPUs would be held
// without it.
func (p *Predictor) gateClaims(now time.Time, name string, statistics int, size float64, limit int,
) (holds []Hold, taken []Taken) {
	h := p.trust.evidenceOf(name)
	if h == nil {
		return nil, nil
	}
	terms := p.cfg.Terms
	terms.JobGPUs, terms.MaxGPUs = size, p.cfg.MaxGPUs
	h.Watch.Plan(now, h.Watch.Demand()+statistics)
	p.closeClaims(now, h)
	for i := range h.Claims {
		c := &h.Claims[i]
		r := c.evidenceRecord(name, limit)
		if from, _, _ := terms.Hold(r); c.Opened || from.After(now) || limit < 1 && c.Told {
			continue
		}
		if limit < 1 {
			c.Told = true
			taken = append(taken, c.taken(evidence.Decision{}))
			continue
		}
		d, err := p.trust.records.Consider(now, c.ID, r, terms)
		if err != nil {
			continue // unreachable: a claim has an id of its own
		}
		c.Opened, c.Until = true, d.Until
		taken = append(taken, c.taken(d))
		if _, _, open := p.trust.records.Open(c.ID); open {
			h.Watch.Open(now, c.ID, r, d)
		}
	}
	return p.listHolds(now, h), taken
}

// chancesOf says what the source's record makes of the chances that were stated.
func (p *Predictor) chancesOf(name string, taken []Taken, windows []Window) []Taken {
	for i, t := range taken {
		baseline := 0.0
		for _, w := range windows {
			if t.Start.Before(w.End) && w.Start.Before(t.End) {
				baseline = max(baseline, w.Statistics.Summary().Any)
			}
		}
		c := claim{Record: Record{Start: t.Start, End: t.End, Mid: t.GPUs, High: t.GPUs, Probability: t.Stated,
			Reason: t.Reason}}
		taken[i].Chance = p.trust.records.Chance(c.evidenceRecord(name, evidence.MaxGPUs), baseline)
	}
	return taken
}

// closeClaims closes the claims whose holds are over, and forgets those whose time is.
func (p *Predictor) closeClaims(now time.Time, h *tenantEvidence) {
	h.Claims = slices.DeleteFunc(h.Claims, func(c claim) bool {
		if c.Opened && c.Until.After(now) || c.End.After(now) {
			return false
		}
		if out, ok := h.Watch.Close(now, c.ID); ok {
			_ = p.trust.records.Close(now, c.ID, out) // it was opened with the watch
		}
		return true
	})
}

// listHolds lists what accepted claims still hold.
func (p *Predictor) listHolds(now time.Time, h *tenantEvidence) []Hold {
	var all []Hold
	for _, c := range h.Claims {
		left := h.Watch.Left(now, c.ID)
		_, d, open := p.trust.records.Open(c.ID)
		if !open || left == 0 {
			continue
		}
		end := d.Until
		if !h.Watch.Begun(c.ID) {
			end = d.Doubt
		}
		start := d.From.Add(p.cfg.Terms.Boot)
		if start.Before(now) {
			start = now
		}
		if start.Before(end) {
			all = append(all, Hold{Start: start, End: end, GPUs: left, Reason: c.Reason, Chance: d.Trust, Decision: d})
		}
	}
	return all
}

// Learn judges what a source said of a window that is closed. Call it once for
// each outcome of an entry with a Statement.
func (p *Predictor) Learn(e Entry, gpus int) {
	if e.Statement == nil {
		return
	}
	r := evidence.Record{
		Source: string(LLM), Reason: string(e.Statement.Reason), Tenant: e.Tenant, Sent: e.Issued, Start: e.Start,
		End: e.Start,
		Mid: 1, High: 1, Probability: e.Statement.Stated,
	}
	p.trust.records.Score(r, e.Statement.Statistics.Any, gpus > 0)
}

// TrackRecord returns where the evidence of a reason stands, to be shown.
func (p *Predictor) TrackRecord(r Reason) evidence.TrackRecord {
	return p.trust.records.TrackRecord(string(LLM), string(r))
}

// correctWindow mixes the evidence that touches w into it, within the bounds and by the
// weight that the source has earned.
func (p *Predictor) correctWindow(w *Window, name string, largest int) {
	h := p.trust.evidenceOf(name)
	if h == nil {
		return
	}
	var model forecast.Forecast
	var strongest claim
	said := Statement{Statistics: w.Statistics.Summary()}
	for _, c := range h.Claims {
		share := c.overlapShare(w.Start, w.End)
		if share <= 0 {
			continue
		}
		r := c.evidenceRecord(name, evidence.MaxGPUs)
		r.Probability = c.Probability * share
		chance := p.trust.records.Chance(r, said.Statistics.Any)
		if said.Evidence == "" || r.Probability > said.Stated {
			strongest = c
			said.Reason, said.Stated, said.Chance, said.Evidence = c.Reason, r.Probability, chance, c.Evidence
		}
		model = forecast.Highest(model, forecast.Event(chance, c.Low, c.Mid, c.High))
	}
	if said.Evidence == "" {
		return
	}
	bounds := forecast.Bounds{Max: p.cfg.MaxGPUs, Floor: p.holdLimit(largest), Factor: 1}
	said.Weight = math.Min(p.cfg.Weight, p.trust.records.Weight(string(LLM), string(said.Reason)))
	w.Statement = &said
	if said.Weight > 0 {
		w.Forecast = forecast.Blend(w.Statistics, bounds.Clamp(model, w.Statistics), said.Weight)
		w.Source, w.Reason, w.Model, w.PromptHash = LLM, said.Reason, strongest.Model, strongest.PromptHash
	}
}

// holdLimit is the most GPUs that a model may speak of: the caps, and a little more
// than the largest job ever seen.
func (p *Predictor) holdLimit(largest int) int {
	return min(p.cfg.MaxGPUs, int(math.Ceil(p.cfg.JobFactor*float64(largest))))
}
