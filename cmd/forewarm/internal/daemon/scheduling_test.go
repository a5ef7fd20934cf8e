package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
)

// schedulingChanges are changes, of scheduling.
var schedulingChanges = map[string]struct{ was, is string }{
	"scheduling.order":                    {"order: arrival", "order: balanced"},
	"scheduling.share_weight":             {"order: arrival", "order: arrival, share_weight: 0.3"},
	"scheduling.overdue":                  {"overdue: 25h", "overdue: 26h"},
	"scheduling.preemption":               {"preemption: true", "preemption: false"},
	"scheduling.preemptible":              {"preemption: true", "preemption: true, preemptible: true"},
	"scheduling.min_runtime":              {"min_runtime: 11m", "min_runtime: 13m"},
	"scheduling.leave_within":             {"leave_within: 3m", "leave_within: 4m"},
	"scheduling.most_preemptions":         {"most_preemptions: 4", "most_preemptions: 5"},
	"scheduling.high_priority":            {"high_priority: admin", "high_priority: member"},
	"scheduling.near_label":               {"near_label: switch", "near_label: rack"},
	"scheduling.submissions.every":        {"every: 9s", "every: 8s"},
	"scheduling.submissions.burst":        {"burst: 90", "burst: 91"},
	"scheduling.submissions.per_day":      {"per_day: 900", "per_day: 901"},
	"scheduling.heat.warm_from":           {"order: arrival", "order: arrival, heat: {warm_from: 70}"},
	"scheduling.heat.hot_from":            {"order: arrival", "order: arrival, heat: {hot_from: 90}"},
	"scheduling.heat.cool_down":           {"order: arrival", "order: arrival, heat: {cool_down: 6m}"},
	"scheduling.pools":                    {"{p1: {min_runtime: 12m}}", "{p1: {min_runtime: 14m}}"},
	"scheduling.half_life":                {"order: arrival", "order: arrival, half_life: 8d"},
	"scheduling.start_charge":             {"order: arrival", "order: arrival, start_charge: 2h"},
	"scheduling.softening":                {"order: arrival", "order: arrival, softening: 11m"},
	"scheduling.bands":                    {"order: arrival", "order: arrival, bands: [2, 20]"},
	"scheduling.promises":                 {"order: arrival", "order: arrival, promises: 3"},
	"scheduling.crowd":                    {"order: arrival", "order: arrival, crowd: 0.5"},
	"scheduling.most_excess":              {"order: arrival", "order: arrival, most_excess: 8"},
	"scheduling.multifactor.age_weight":   {"order: arrival", "order: arrival, multifactor: {age_weight: 2}"},
	"scheduling.multifactor.share_weight": {"order: arrival", "order: arrival, multifactor: {share_weight: 2}"},
	"scheduling.multifactor.full_age":     {"order: arrival", "order: arrival, multifactor: {full_age: 2d}"},
	"scheduling.restart_cost":             {"order: arrival", "order: arrival, restart_cost: 3m"},
	"scheduling.most_preempting":          {"order: arrival", "order: arrival, most_preempting: 4"},
	"scheduling.most_waiting":             {"order: arrival", "order: arrival, most_waiting: 500"},
	"scheduling.most_waiting_of_one":      {"order: arrival", "order: arrival, most_waiting_of_one: 50"},
	"scheduling.default_runtime":          {"order: arrival", "order: arrival, default_runtime: 2h"},
	"scheduling.priorities": {"order: arrival", "order: arrival, " +
		"priorities: {normal: {value: 1}, high: {value: 3}}"},
	"scheduling.default_priority": {"order: arrival", "order: arrival, default_priority: low"},
}

func readScheduling(t *testing.T, text string) (ledger.SchedulingConfig, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forewarm.yaml")
	require.NoError(t, os.WriteFile(path, []byte("scheduling: "+text+"\n"), 0o600))
	cfg, err := loadConfig(path)
	return cfg.Scheduling.config(), err
}

// What cannot be meant is refused where it stands, with what to write instead.
func TestSchedulingIsChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{half_life: 1m}":    "scheduling.half_life: must be between 1h and 365d",
		"{softening: 8d}":    "scheduling.softening: must be between 1s and 7d",
		"{bands: [1, 1]}":    "scheduling.bands",
		"{promises: -1}":     "scheduling.promises: must be between 0 and 1000",
		"{crowd: 0}":         "scheduling.crowd",
		"{most_excess: 0.5}": "scheduling.most_excess",
		"{multifactor: {age_weight: 0, share_weight: 0}}":          "scheduling.multifactor",
		"{multifactor: {age_weight: .nan}}":                        "scheduling.multifactor",
		"{most_waiting: 100001}":                                   "scheduling.most_waiting: must be between 1 and 100000",
		"{pools: {lab: {restart_cost: 48h}}}":                      "scheduling.pools.lab.restart_cost",
		"{priorities: {Urgent: {value: 1}}}":                       "is no name of a class",
		"{priorities: {normal: {}}}":                               "scheduling.priorities.normal.value: must be given",
		"{priorities: {normal: {value: 9999999}}}":                 "scheduling.priorities.normal.value",
		"{priorities: {normal: {value: 1, least_role: boss}}}":     `"boss" is no role`,
		"{priorities: {normal: {value: 1, organizations: ['']}}}":  "has an empty name",
		"{priorities: {usual: {value: 1}}}":                        "scheduling.default_priority: must name one",
		"{default_priority: usual}":                                "low, normal, high",
		"{high_priority: admin, priorities: {normal: {value: 1}}}": "scheduling.high_priority: is of the class high",
		"{pools: {lab: {high_priority: admin}}, priorities: {normal: {value: 1}}}": "scheduling.pools.lab.high_priority: " +
			"is of the class high",
	} {
		_, err := readScheduling(t, text)
		require.ErrorContains(t, err, want, text)
	}
}

// Rules of a pool stand over those of all, and what nobody says has the defaults.
func TestNumbersOfPools(t *testing.T) {
	t.Parallel()
	c, err := readScheduling(t, "{bands: [5], promises: 2, multifactor: {age_weight: 3}, most_waiting: 10, "+
		"pools: {lab: {promises: 0, multifactor: {full_age: 1d}, most_waiting_of_one: 4, bands: []}}}")
	require.NoError(t, err)
	all, lab := c.Of("other"), c.Of("lab")
	require.Equal(t, []int{10, 10, 10, 4}, []int{all.MostWaiting, all.MostWaitingOfOne, lab.MostWaiting,
		lab.MostWaitingOfOne})
	require.Equal(t, 24*time.Hour, all.DefaultRuntime)
	p, q := all.Policy(nil), lab.Policy(nil)
	require.Equal(t, []int{2, 0}, []int{p.Promises, q.Promises})
	require.Equal(t, []int{5}, p.Bands)
	require.Empty(t, q.Bands)
	require.NotNil(t, q.Bands, "none, and not the default")
	require.Equal(t, scheduler.Factors{Age: 3, Share: 1, FullAge: 24 * time.Hour}, q.Factors)
	def := ledger.SchedulingConfig{}.Of("").Policy(nil)
	usual := scheduler.Default()
	require.Equal(t, []any{usual.FairShare, usual.Softening, usual.Bands, usual.Promises, usual.Crowd, usual.MostExcess,
		usual.Factors, usual.Overdue}, []any{def.FairShare, def.Softening, def.Bands, def.Promises, def.Crowd,
		def.MostExcess, def.Factors, def.Overdue})
}

// Classes come from the file with all that they say, and without any there are the usual three.
func TestPrioritiesOfTheFile(t *testing.T) {
	t.Parallel()
	c, err := readScheduling(t, "{default_priority: bulk, priorities: {bulk: {value: -3, preemptible: true}, "+
		"urgent: {value: 9, least_role: admin, organizations: [lab], preempts: false, overdue: 2h}}}")
	require.NoError(t, err)
	s := c.Of("any")
	require.Equal(t, []string{"bulk", "urgent"}, s.Priorities.Names())
	require.Equal(t, ledger.PriorityClass{Value: 9, Least: ledger.Admin, Organizations: []string{"lab"},
		NoPreempting: true, Overdue: 2 * time.Hour}, s.Priorities.Of("urgent"))
	require.Equal(t, job.Priority("bulk"), s.Priorities.CountsAs(job.Normal))
	require.True(t, s.Priorities.AllowsLeaving(job.Job{Priority: "bulk"}))
	usual := ledger.SchedulingConfig{}.Of("").Priorities
	require.Equal(t, []string{"low", "normal", "high"}, usual.Names())
	require.Equal(t, job.Normal, usual.CountsAs("gone"))
	require.Equal(t, []string{"low", "normal", "high"}, lostPriorities(Scheduling{}, Scheduling{
		Priorities: map[string]Priority{"bulk": {}}}))
}
