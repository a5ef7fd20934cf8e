package daemon

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/ledger"
)

// Tuning is ledger.Tuning. Zero values mean its defaults.
type Tuning struct {
	HalfLife         strictyaml.Duration `yaml:"half_life"`
	StartCharge      strictyaml.Duration `yaml:"start_charge"`
	Softening        strictyaml.Duration `yaml:"softening"`
	Bands            []int               `yaml:"bands"`
	Promises         *int                `yaml:"promises"`
	Crowd            *float64            `yaml:"crowd"`
	MostExcess       *float64            `yaml:"most_excess"`
	Multifactor      Factors             `yaml:"multifactor"`
	RestartCost      strictyaml.Duration `yaml:"restart_cost"`
	MostPreempting   int                 `yaml:"most_preempting"`
	MostWaiting      int                 `yaml:"most_waiting"`
	MostWaitingOfOne int                 `yaml:"most_waiting_of_one"`
	DefaultRuntime   strictyaml.Duration `yaml:"default_runtime"`
}

// Factors are scheduler.Factors, of which nil is 1.
type Factors struct {
	AgeWeight   *float64            `yaml:"age_weight"`
	ShareWeight *float64            `yaml:"share_weight"`
	FullAge     strictyaml.Duration `yaml:"full_age"`
}

func (f Factors) over(all Factors) Factors {
	return Factors{AgeWeight: cmp.Or(f.AgeWeight, all.AgeWeight), ShareWeight: cmp.Or(f.ShareWeight, all.ShareWeight),
		FullAge: cmp.Or(f.FullAge, all.FullAge)}
}

func (f Factors) rules() *scheduler.Factors {
	if f == (Factors{}) {
		return nil
	}
	return &scheduler.Factors{Age: valueOr(f.AgeWeight, 1), Share: valueOr(f.ShareWeight, 1), FullAge: f.FullAge.Std()}
}

func valueOr[T any](p *T, without T) T {
	if p == nil {
		return without
	}
	return *p
}

func (t Tuning) over(all Tuning) Tuning {
	bands := t.Bands
	if bands == nil {
		bands = all.Bands
	}
	return Tuning{HalfLife: cmp.Or(t.HalfLife, all.HalfLife), Softening: cmp.Or(t.Softening, all.Softening), Bands: bands,
		StartCharge: cmp.Or(t.StartCharge, all.StartCharge),
		Promises:    cmp.Or(t.Promises, all.Promises), Crowd: cmp.Or(t.Crowd, all.Crowd),
		MostExcess: cmp.Or(t.MostExcess, all.MostExcess), Multifactor: t.Multifactor.over(all.Multifactor),
		RestartCost:      cmp.Or(t.RestartCost, all.RestartCost),
		MostPreempting:   cmp.Or(t.MostPreempting, all.MostPreempting),
		MostWaiting:      cmp.Or(t.MostWaiting, all.MostWaiting),
		MostWaitingOfOne: cmp.Or(t.MostWaitingOfOne, all.MostWaitingOfOne),
		DefaultRuntime:   cmp.Or(t.DefaultRuntime, all.DefaultRuntime)}
}

func (t Tuning) rules() ledger.Tuning {
	return ledger.Tuning{HalfLife: t.HalfLife.Std(), StartCharge: t.StartCharge.Std(), Softening: t.Softening.Std(),
		Bands: t.Bands, Promises: t.Promises,
		Crowd: valueOr(t.Crowd, 0), MostExcess: valueOr(t.MostExcess, 0), Factors: t.Multifactor.rules(),
		RestartCost: t.RestartCost.Std(), MostPreempting: t.MostPreempting, MostWaiting: t.MostWaiting,
		MostWaitingOfOne: t.MostWaitingOfOne, DefaultRuntime: t.DefaultRuntime.Std()}
}

// What may be written of an order's numbers at most.
const (
	mostBands    = 16
	mostPromises = 1000
	mostWeight   = 1000
)

// within is a duration that may be left out.
type within struct {
	key         string
	value       strictyaml.Duration
	least, most time.Duration
	fix         string
}

func (c Config) checkTuning(at string, t Tuning) error {
	const day = 24 * time.Hour
	for _, d := range []within{
		{"half_life", t.HalfLife, time.Hour, 365 * day, "write 7d"},
		{"start_charge", t.StartCharge, time.Second, 7 * day, "write 1h"},
		{"softening", t.Softening, time.Second, 7 * day, "write 10m"},
		{"multifactor.full_age", t.Multifactor.FullAge, time.Minute, 365 * day, "write 7d"},
		{"restart_cost", t.RestartCost, time.Second, day, "write 2m"},
		{"default_runtime", t.DefaultRuntime, time.Second, 365 * day, "write 1d"},
	} {
		if d.value != 0 && (d.value.Std() < d.least || d.value.Std() > d.most) {
			return c.valueError(at+"."+d.key, fmt.Sprintf("must be between %s and %s", spanText(d.least), spanText(d.most)),
				d.fix)
		}
	}
	switch {
	case !areBands(t.Bands):
		return c.valueError(at+".bands", fmt.Sprintf("needs whole GPU-hours above 0, each larger than the one before it, "+
			"at most %d", mostBands), "write [1, 10, 100], or [] for none")
	case t.Promises != nil && (*t.Promises < 0 || *t.Promises > mostPromises):
		return c.valueError(at+".promises", fmt.Sprintf("must be between 0 and %d", mostPromises), "write 1")
	case t.Crowd != nil && !(*t.Crowd > 0 && *t.Crowd <= 1):
		return c.valueError(at+".crowd", "must be more than 0 and at most 1", "write 0.25")
	case t.MostExcess != nil && !(*t.MostExcess >= 1 && *t.MostExcess <= 1e6):
		return c.valueError(at+".most_excess", "must be between 1 and 1000000", "write 16, or 1 for no comparison of people")
	}
	if err := c.checkFactors(at+".multifactor", t.Multifactor); err != nil {
		return err
	}
	return c.checkCounts(at, t)
}

// areBands reports whether these can be the bounds of bands.
func areBands(hours []int) bool {
	before := 0
	for _, h := range hours {
		if h <= before || h > 1e6 {
			return false
		}
		before = h
	}
	return len(hours) <= mostBands
}

func (c Config) checkFactors(at string, f Factors) error {
	age, share := valueOr(f.AgeWeight, 1), valueOr(f.ShareWeight, 1)
	if !(age >= 0 && age <= mostWeight && share >= 0 && share <= mostWeight) || age+share == 0 {
		return c.valueError(at, fmt.Sprintf("needs weights between 0 and %d that are not both 0", mostWeight),
			"write age_weight: 1 and share_weight: 1")
	}
	return nil
}

func (c Config) checkCounts(at string, t Tuning) error {
	for _, n := range []struct {
		key         string
		value, most int
	}{
		{"most_preempting", t.MostPreempting, 1000},
		{"most_waiting", t.MostWaiting, ledger.MostJobs},
		{"most_waiting_of_one", t.MostWaitingOfOne, ledger.MostJobsOfOne},
	} {
		if n.value < 0 || n.value > n.most {
			return c.valueError(at+"."+n.key, fmt.Sprintf("must be between 1 and %d", n.most), "leave it out for the default")
		}
	}
	return nil
}

// spanText is a bound of a duration as people write it.
func spanText(d time.Duration) string {
	if whole := d / (24 * time.Hour); whole > 0 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", whole)
	}
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
