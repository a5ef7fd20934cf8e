package main

import (
	"strings"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// scenario is a trace and a boot time.
type scenario struct {
	name     string // of its figures
	of       string // the trace that it is made of
	trace    backtest.Trace
	prior    forecast.Prior // what Forewarm knows before
	learned  string         // where from
	worths   []float64      // of waiting, that Forewarm is run at; nil for all
	boot     int64          // seconds
	messages []Message      // what a source said, in the order of Sent; nil if there is none
	members  []string       // the tenants that share all units, if they do
	failures float64        // the share of boots that fail
	spread   float64        // by which part of boot the 95th percentile of boots is longer; 0: all take as long
	capacity int            // the most units that there are; 0 for no limit
}

// messagesTo returns what was said of a tenant, in the order of Sent.
func (s *scenario) messagesTo(tenant int) []Message {
	var own []Message
	for _, m := range s.messages {
		if m.Tenant == tenant {
			own = append(own, m)
		}
	}
	return own
}

// family is a kind of policy with the parameters it is run at.
type family struct {
	name     string // of its figures
	settings func(s *scenario) []setting
	listens  bool // reads a scenario's messages; others are not run where there are any
	ablation bool // run only if asked for
	regret   bool // run only where regret is measured
}

// setting is one run of a family.
type setting struct {
	label     string
	price     float64 // what an hour of waiting is worth, if that alone set the parameter; else 0
	keepAlive int64   // seconds
	// policies makes the policies of a new run, which may share what they learn;
	// nil wants nothing.
	policies    func() func(tenant int) backtest.Policy
	calibration *calibration // of what the policies say; nil if it is not checked
	// solo names the expert that this is, by the price of waiting at which it is one.
	solo map[float64]string
}

// prices are what an hour of one waiting job is worth, in idle GPU-hours.
var prices = []float64{8, 32, 128}

// listFamilies lists what is run, in the order of the tables. The first one is what
// happens without any pre-warming; it is part of every family's frontier.
func listFamilies() []family {
	return append([]family{
		{name: "reactive", settings: func(*scenario) []setting { return []setting{{label: "reactive"}} }},
		{name: "keepalive", settings: keepAlives},
		{name: "alwayson", settings: alwaysOn},
		{name: "histogram", settings: histogramSettings},
		{name: "seasonal", settings: seasonalSettings},
		{name: "ewma", settings: ewmaSettings},
		{name: "holtwinters", settings: holtWinters},
		{name: "newsvendor", settings: newsvendorSettings},
		{name: "reference", settings: referenceSettings, listens: true},
		{name: "uplift", settings: trustSettings, listens: true},
		{name: "solo", settings: soloSettings, regret: true},
	}, forewarmFamilies()...)
}

func familyNames() string {
	var all []string
	for _, f := range listFamilies() {
		all = append(all, f.name)
	}
	return strings.Join(all, ", ")
}

// settingForEach makes a setting for every parameter, whose policies share nothing.
func settingForEach[P any](parameters []P, label func(P) string, policy func(P) backtest.Policy) []setting {
	var all []setting
	for _, p := range parameters {
		all = append(all, setting{label: label(p), policies: func() func(int) backtest.Policy {
			return func(int) backtest.Policy { return policy(p) }
		}})
	}
	return all
}
