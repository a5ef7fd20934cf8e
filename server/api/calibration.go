package api

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/ledger"
)

// calibrationText goes with the numbers, so that nobody has to guess what they
// are.
const calibrationText = "Closed forecasts whose windows started in the period, by source. " +
	"A forecast was recorded before its window began, or at most two minutes later. " +
	"It states how many GPUs will be requested in the window: three quantiles, and the probability of any. " +
	"mean_pinball is the pinball loss of the quantiles in GPUs, averaged over the three. " +
	"brier is the mean squared error of the probability, and log_loss is minus the mean logarithm of the " +
	"probability given to what happened (clamped to one in a million); for all of these, less is better. " +
	"interval: p10 to p90 should contain the number in 80 % of cases. " +
	"baseline: the same windows predicted by statistics alone; uplift is how much lower the source's Brier score " +
	"is, and skill is that as a share of the baseline's. " +
	"bins: forecasts with about the same stated probability, with its mean and the share that came true; " +
	"with n forecasts the share varies by about the square root of stated x (1 - stated) / n. " +
	"Outcomes are as counted by their senders. " +
	"runtimes: jobs that ended by themselves in the period and whose runtime was predicted when they got their GPUs. " +
	"jobs: by pool, those runtimes, and starts in the period of jobs that had to wait, as they were first predicted, " +
	"within five minutes of their submission; jobs whose first attempt was not their last are not counted. " +
	"mean_absolute_error_seconds is by how much the likely time was wrong, and mean_pinball_seconds the pinball loss of " +
	"the three times, averaged."

func reportCalibration(ctx context.Context, a *API, in *struct {
	OfOrganization
	Source string `query:"source" enum:"statistics,llm,extractor,rule,person" doc:"All, when left out."`
	Days   int    `query:"days" minimum:"1" maximum:"366" default:"30"`
},
) (*One[contract.CalibrationReport], error) {
	to := truncateTime(a.Clock.Now())
	from := to.Add(-time.Duration(in.Days) * 24 * time.Hour)
	out := contract.CalibrationReport{From: from, To: to, Definition: calibrationText,
		Sources: []contract.SourceCalibration{}, Jobs: []contract.JobCalibration{}}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		found, err := r.Calibrations(s, ledger.CalibrationFilter{Source: ledger.ForecastSource(in.Source), From: from,
			To: to})
		for _, c := range found {
			out.Sources = append(out.Sources, encodeCalibration(c))
		}
		if err != nil || in.Source != "" {
			return err
		}
		predicted, err := r.JobPredictions(s, from, to)
		if err != nil {
			return err
		}
		out.Runtimes = encodeRuntimes(ledger.RuntimesOf(predicted))
		out.Jobs, err = jobCalibrations(r, predicted)
		return err
	})
	return &One[contract.CalibrationReport]{Body: out}, err
}

func encodeRuntimes(s ledger.PredictionScore) *contract.RuntimeCalibration {
	if s.N == 0 {
		return nil
	}
	return &contract.RuntimeCalibration{ByLikely: s.ByMedian,
		Interval: contract.IntervalCoverage{Said: 0.8, Seen: s.Inside, N: s.N}}
}

// jobCalibrations are by pool. One that is gone has no name.
func jobCalibrations(r ledger.Reader, found []ledger.JobPredictions) ([]contract.JobCalibration, error) {
	out := make([]contract.JobCalibration, 0, len(found))
	for _, p := range found {
		is := contract.JobCalibration{PoolID: p.PoolID, Starts: encodeScore(p.Starts), Runtimes: encodeScore(p.Runtimes)}
		pool, err := r.Pool(p.PoolID)
		if ledger.IgnoreMissing(err) != nil {
			return nil, err
		}
		is.PoolName = pool.Name
		out = append(out, is)
	}
	return out, nil
}

func encodeScore(s ledger.PredictionScore) *contract.TimeCalibration {
	if s.N == 0 {
		return nil
	}
	return &contract.TimeCalibration{Interval: contract.IntervalCoverage{Said: 0.8, Seen: s.Inside, N: s.N},
		MeanAbsoluteError: s.Error.Seconds(), MeanPinball: s.Pinball.Seconds(),
		MeanMeasuredLength: s.Measured.Seconds()}
}

func encodeCalibration(c ledger.Calibration) contract.SourceCalibration {
	return contract.SourceCalibration{
		Source: string(c.Source), N: c.N, MeanPinball: c.Pinball, Brier: c.Brier, LogLoss: c.LogLoss,
		Interval: contract.IntervalCoverage{Said: 0.8, Seen: c.Inside, N: c.N},
		Baseline: againstBaseline(c), Influence: encodeFraction(c.Influence), Bins: encodeBins(c.Bins),
	}
}

func againstBaseline(c ledger.Calibration) *contract.AgainstBaseline {
	if c.Compared == 0 {
		return nil
	}
	out := &contract.AgainstBaseline{N: c.Compared, Brier: c.BaselineBrier, SourceBrier: c.BesideBrier,
		Uplift: c.BaselineBrier - c.BesideBrier}
	if skill, ok := forecast.Skill(c.BesideBrier, c.BaselineBrier); ok {
		out.Skill = &skill
	}
	return out
}

func encodeBins(bins [ledger.ReliabilityBins]ledger.ReliabilityBin) []contract.ReliabilityBin {
	out := make([]contract.ReliabilityBin, len(bins))
	for i, b := range bins {
		out[i] = contract.ReliabilityBin{From: float64(i) / ledger.ReliabilityBins,
			To: float64(i+1) / ledger.ReliabilityBins, N: b.N}
		if b.N > 0 {
			out[i].Said, out[i].Seen = &b.Said, &b.Seen
		}
	}
	return out
}
