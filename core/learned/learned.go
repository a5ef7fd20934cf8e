// Package learned holds what a pool has learned from what happened to it: how
// long its boots take, whether its provider delivers, when people come without
// a reservation, and how much of their leases they use.
//
// Everything is a value with methods that return what it is afterwards. The planner
// decides by it, the wait estimate draws on it, and the ledger stores it with the
// pool.
package learned

// Learned is what a pool has learned from what happened to it.
type Learned struct {
	Boot BootTimes
	Supply
	Arrivals Arrivals
	Leases   LeaseUse
	Cleaning []Cleaning // not learned, but kept with it: what was given back and is not clean
	Rooms    []Room     // kept with it, too: what jobs leave for others
	// Sources is what is known of the pool's alternates, by capacity.Offering.Key. Boot
	// and Supply are its first source's.
	Sources map[string]SourceLearned
}
