package archtest

import "slices"

// Rules is the whole set. The zero value forbids nothing but packages that no
// boundary names.
type Rules struct {
	Boundaries []Boundary
	Bans       []Ban
	Closures   []Closure
	Calls      []CallBan
	Names      []string // package names that say nothing (D13)
	Words      []Word   // words that no name may have (D14)
	Texts      []Word   // texts that no user may be shown (D14)
	// LargeTypes may have more methods than others (D15).
	LargeTypes []string
	// Planned are packages and modules that a rule may name before they exist.
	// Once they exist the entry is a fault: a rule must not look for a ghost.
	Planned []string
}

// Boundary says what a group of packages may import. A package obeys the first
// boundary that names it, and must be named by one.
type Boundary struct {
	Rule string
	Of   []string // patterns of the packages it binds
	Own  []string // our packages they may import; a package's own subtree is never implied
	Std  []string // if not nil, the only packages of the standard library they may import
	// Folder lets a package import what lies in the same folder two levels down
	// from the root: provisioners/x imports provisioners/x/y, never a sibling.
	Folder bool
	// StdOnly forbids every module but the standard library.
	StdOnly bool
	Why     string
}

// Ban keeps import paths, of modules or of the standard library, out of
// packages.
type Ban struct {
	Rule    string
	Imports []string
	In      []string // where it holds
	Except  []string // the packages that may
	Why     string
}

// Closure keeps paths out of everything that a package needs, however far away.
type Closure struct {
	Rule    string
	Of      []string
	Own     []string // our packages that must not be in it
	Imports []string // other import paths that must not be in it
	Why     string
}

// CallBan forbids names of a package: functions, and types in composite
// literals.
type CallBan struct {
	Rule   string
	Path   string // the import path; for ours relative to the module
	Names  []string
	In     []string
	Except []string
	Why    string
}

// House returns the rules of this repository.
func House() Rules {
	return Rules{
		Boundaries: slices.Concat(coreBoundaries(), ledgerBoundaries(), boundaries),
		Bans:       bans,
		Closures:   closures,
		Calls:      calls,
		Names:      []string{"util", "utils", "common", "helper", "helpers", "misc"},
		Words:      retiredWords,
		Texts:      retiredTexts,
		LargeTypes: []string{"client/Client"}, // an SDK has a method for each request
		Planned:    planned,
	}
}

// coreOrder is the order in which core is built: a package may import packages
// of earlier groups only.
var coreOrder = [][]string{
	{"core/statemachine"}, {"core/money", "core/phrase", "core/access"}, {"core/capacity"}, {"core/calendar"},
	{"core/quota", "core/activity"}, {"core/fairshare"}, {"core/priority", "core/queue"},
	{"core/reservation", "core/allocation", "core/node", "core/job", "core/forecast", "core/backtest", "core/evidence",
		"core/cost", "core/health"},
	{"core/admission", "core/placement", "core/learned", "core/observe", "core/coldstart", "core/runtimes"},
	{"core/wait", "core/scheduler"},
	{"core/plan"},
}

const whyCore = "core decides on values alone, so that the same inputs give the same decision; " +
	"a new core package takes its place in coreOrder, and imports only what comes before it"

func coreBoundaries() []Boundary {
	var all []Boundary
	var earlier []string
	for _, group := range coreOrder {
		all = append(all, Boundary{Rule: "D1", Of: group, Own: earlier, StdOnly: true, Why: whyCore})
		earlier = append(append([]string{}, earlier...), group...)
	}
	return all
}

// ledgerOrder is the order in which the ledger's verbs are built.
var ledgerOrder = [][]string{
	{"ledger"},
	{"ledger/internal/txn"},
	{"ledger/internal/journal", "ledger/internal/tenancy"},
	{"ledger/internal/booking"},
	{"ledger/internal/fleet", "ledger/internal/outlook", "ledger/internal/measure"},
	{"ledger/internal/jobs", "ledger/internal/work", "ledger/internal/preview"},
	{"ledger/internal/report", "ledger/internal/setup"},
	{"ledger/verbs"},
}

const whyLedger = "a noun's verbs know the nouns below theirs, and none knows who asks: no HTTP, queue, provider or " +
	"SQL; a new package of verbs takes its place in ledgerOrder"

func ledgerBoundaries() []Boundary {
	var all []Boundary
	earlier := []string{"ledger/recurrence", "core/...", "internal/clock", "internal/ids", "internal/keys"}
	for _, group := range ledgerOrder {
		all = append(all, Boundary{Rule: "D3", Of: group, Own: earlier, StdOnly: true, Why: whyLedger})
		earlier = append(append([]string{}, earlier...), group...)
	}
	return all
}

// planned: delete an entry in the change that creates what it names.
var planned = []string{
	"web",
}
