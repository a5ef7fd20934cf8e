// Package ledgertest is the conformance suite of ledger.Store: what every verb
// relies on, checked through the port alone, so that both databases mean the
// same by it.
//
// The suite never moves a clock. The database has its own, so a lease that is
// over is one of negative length, and history is written with times of the past.
package ledgertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// Exercise runs the suite. open returns an empty store that is closed when its
// test ends; it is called once for every test, from several goroutines.
func Exercise(t *testing.T, open func(t *testing.T) ledger.Store) {
	for name, test := range map[string]func(*world){
		"every field comes back":       everyFieldComesBack,
		"every field can change":       everyFieldCanChange,
		"what is missing is not found": whatIsMissingIsNotFound,
		"an old version is refused":    anOldVersionIsRefused,
		"ended keys are left out":      endedKeysAreLeftOut,
		"a taken name is refused":      aTakenNameIsRefused,
		"nonsense is refused":          nonsenseIsRefused,
		"lists are filtered":           listsAreFiltered,
		"lists come in pages":          listsComeInPages,
		"names are found":              namesAreFound,

		"what a key made is found": whatAKeyMadeIsFound, "nobody sees another tenant": nobodySeesAnotherTenant,
		"a failed transaction leaves nothing":    aFailedTransactionLeavesNothing,
		"a swallowed failure leaves nothing":     aSwallowedFailureLeavesNothing,
		"a nested transaction is one":            aNestedTransactionIsOne,
		"a lost half loses the whole":            aLostHalfLosesTheWhole,
		"time stands still in a transaction":     timeStandsStill,
		"a lock keeps updates from being lost":   aLockKeepsUpdates,
		"one slot has one machine":               oneSlotHasOneMachine,
		"a deleted pool is found by its name":    aDeletedPoolIsFoundByItsName,
		"one gpu has one holder":                 oneGPUHasOneHolder,
		"one worker holds a provisioner":         oneWorkerHoldsAProvisioner,
		"workers that are gone are known":        goneWorkersAreKnown,
		"a pool's state is what is live":         aPoolsStateIsWhatIsLive,
		"a task runs once":                       aTaskRunsOnce,
		"a keyed task runs again and again":      aKeyedTaskRunsAgain,
		"a keyed task exists once":               aKeyedTaskExistsOnce,
		"waking pulls forward":                   wakingPullsForward,
		"a dead worker's task is given away":     aDeadWorkersTaskIsGivenAway,
		"a stale worker is fenced":               aStaleWorkerIsFenced,
		"of many claims one wins":                ofManyClaimsOneWins,
		"dispatchers share without overlap":      dispatchersShare,
		"work that nobody does is late":          lateWorkIsKnown,
		"the next task is known":                 theNextTaskIsKnown,
		"events are in order and filtered":       eventsAreInOrder,
		"a follower misses no event":             aFollowerMissesNone,
		"commitments are the sum of the rows":    commitmentsAreTheSum,
		"spent is the sum of the rest":           spentIsTheSum,
		"spent counts where leases began":        spentCountsWhereLeasesBegan,
		"live and spent are commitments":         liveAndSpentAreCommitments,
		"what is remembered is what there is":    whatIsRememberedIsWhatThereIs,
		"spending is remembered by the month":    spendingIsRememberedByTheMonth,
		"the past is listed":                     thePastIsListed,
		"tasks tell that they are due":           tasksTellThatTheyAreDue,
		"what is urgent is told":                 urgentChangesAreTold,
		"a lock reads what it locks":             aLockReadsWhatItLocks,
		"what changed in a pool is listed":       whatChangedInAPoolIsListed,
		"changes that cannot be told":            changesThatCannotBeTold,
		"revisions are apart from versions":      revisionsAreApartFromVersions,
		"revisions are those committed last":     revisionsAreThoseCommittedLast,
		"a change wakes tasks":                   wakingWithinAChange,
		"many rows are as good as one":           manyRowsAreAsGoodAsOne,
		"many machines and their devices":        manyMachinesAndTheirDevices,
		"many tasks of some keys":                manyTasksOfSomeKeys,
		"the last save commits":                  theLastSaveCommits,
		"the report matches a sum made by hand":  theReportMatches,
		"the report adds up to the costs":        theReportAddsUpToCosts,
		"costs are divided among who held":       costsAreDivided,
		"costs of the past":                      costsOfThePast,
		"an orphan's birth stays":                anOrphansBirthStays,
		"a report of nothing is nothing":         aReportOfNothing,
		"a forecast is closed once":              aForecastIsClosedOnce,
		"forecasts are filtered":                 forecastsAreFiltered,
		"a whole batch of forecasts":             manyForecasts,
		"calibration matches a sum made by hand": calibrationsMatch,
		"decisions come newest first":            decisionsComeNewestFirst,
		"answers are stored once and told apart": answersAreStoredOnce,
		"a closed context stops a transaction":   aClosedContextStops,
		"the store answers":                      theStoreAnswers,
		"the first pepper stays":                 theFirstPepperStays,
		"seals come back":                        sealsComeBack,
		"a write is checked":                     aWriteIsChecked,
		"servers are listed":                     serversAreListed,
		"observed work is found and no spending": observedWorkIsFound,
		"daemons are found":                      daemonsAreFound,
		"jobs are found":                         jobsAreFound,
		"what GPUs did is found":                 stretchesAreFound,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&world{T: t, store: open(t)})
		})
	}
}

// world is one test's store.
type world struct {
	*testing.T
	store ledger.Store
}

// save writes a change in a transaction of its own.
func (w *world) save(c ledger.Change) error {
	return w.inTx(func(tx ledger.Tx) error { return tx.Save(c) })
}

// mustSave writes a change that has to succeed.
func (w *world) mustSave(c ledger.Change) {
	w.Helper()
	require.NoError(w, w.save(c))
}

func (w *world) inTx(fn func(tx ledger.Tx) error) error {
	return w.store.InTx(w.Context(), func(tx ledger.Tx) error { return fn(tx) })
}

func (w *world) readSnapshot(fn func(r ledger.Reader) error) {
	w.Helper()
	require.NoError(w, w.store.Read(w.Context(), fn))
}

// now returns the store's time.
func (w *world) now() time.Time {
	var now time.Time
	w.readSnapshot(func(r ledger.Reader) error {
		now = r.Now()
		return nil
	})
	return now
}

// readValue reads one value.
func readValue[T any](w *world, read func(r ledger.Reader) (T, error)) T {
	w.Helper()
	var value T
	w.readSnapshot(func(r ledger.Reader) (err error) {
		value, err = read(r)
		return err
	})
	return value
}

// everything is the scope of the installation itself.
var everything = ledger.Scope{All: true}

func theStoreAnswers(w *world) {
	require.NoError(w, w.store.Ping(w.Context()))
}
