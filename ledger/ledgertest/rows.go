package ledgertest

import (
	"reflect"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// setEverywhere fails when an exported field is zero, at any depth: a test that
// stores zeros would not notice a lost column.
func setEverywhere(w *world, v reflect.Value, path string, except ...string) {
	w.Helper()
	for _, name := range except {
		if path == name {
			return
		}
	}
	if v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]() {
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				setEverywhere(w, v.Field(i), path+"."+f.Name, except...)
			}
		}
		return
	}
	require.False(w, v.IsZero(), "the fixture must set %s", path)
}

// comesBack saves what change holds and compares what is read with it.
func comesBack[T any](w *world, want T, change ledger.Change, read func(r ledger.Reader) (T, error)) {
	w.Helper()
	setEverywhere(w, reflect.ValueOf(want), "", ".Version", ".Pool.Version", ".Limits.Cohort", ".Limits.Borrowing",
		".Limits.Lending", ".Limits.Period", ".Limits.Weight")
	w.mustSave(change)
	version := reflect.ValueOf(&want).Elem().FieldByName("Version")
	if version.IsValid() {
		version.SetInt(1)
	}
	require.Equal(w, want, readValue(w, read))
}

func everyFieldComesBack(w *world) {
	n := saveGround(w)
	scope := ledger.Scope{OrganizationID: "org_3"}
	o := newOrganization("org_3")
	o.DeletedAt = day.Add(time.Hour)
	comesBack(w, o, ledger.Change{Organizations: []ledger.Organization{o}},
		func(r ledger.Reader) (ledger.Organization, error) { return r.Organization(scope, "org_3") })
	u := newUser("usr_3", "org_3")
	u.DeletedAt = day.Add(time.Hour)
	comesBack(w, u, ledger.Change{Users: []ledger.User{u}},
		func(r ledger.Reader) (ledger.User, error) { return r.User(scope, "usr_3") })
	k := newKey("key_3", "org_3")
	comesBack(w, k, ledger.Change{Keys: []ledger.Key{k}},
		func(r ledger.Reader) (ledger.Key, error) { return r.Key(scope, "key_3") })
	p := newPool("pol_3")
	p.DeletedAt = day.Add(time.Hour)
	p.Observed, p.Holders = true, fullHolders()
	comesBack(w, p, ledger.Change{Pools: []ledger.Pool{p}},
		func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_3") })
	full := fullNode(w, "nod_3", "pol_3", 5)
	comesBack(w, full, ledger.Change{Nodes: []node.Node{full}},
		func(r ledger.Reader) (node.Node, error) { return r.Node("nod_3") })
	rsv := fullReservation(w, "rsv_3", "org_3", "pol_3")
	comesBack(w, rsv, ledger.Change{Reservations: []reservation.Reservation{rsv}},
		func(r ledger.Reader) (reservation.Reservation, error) { return r.Reservation(scope, "rsv_3") })
	a := releasedAllocation(w, activeAllocation(w, "alc_3", "org_3", n, day, 3, 0), day.Add(time.Hour))
	a.Shape = capacity.Shape{Nodes: 2, PerNode: 3, Short: 1}
	a.Work, a.JobID, a.Apart = fullWork(), "job_3", []string{"web", "arr_1"}
	comesBack(w, a, ledger.Change{Allocations: []allocation.Allocation{a}},
		func(r ledger.Reader) (allocation.Allocation, error) { return r.Allocation(scope, "alc_3") })
	s := newSchedule("sch_3", "org_3", "pol_3")
	s.Layout = capacity.Layout{Nodes: 2, PerNode: 3, Even: true}
	comesBack(w, s, ledger.Change{Schedules: []ledger.Schedule{s}},
		func(r ledger.Reader) (ledger.Schedule, error) { return r.Schedule(scope, "sch_3") })
	answer := newReplay("org_3", "once")
	comesBack(w, answer, ledger.Change{Replays: []ledger.Replay{answer}},
		func(r ledger.Reader) (ledger.Replay, error) {
			found, ok, err := r.Replay("org_3", answer.Route, "once")
			require.True(w, ok)
			return found, err
		})
	shown := newPreview("pln_3", "org_3")
	comesBack(w, shown, ledger.Change{Plans: []ledger.Preview{shown}},
		func(r ledger.Reader) (ledger.Preview, error) { return r.Preview(scope, "pln_3") })
	p1 := newPause("org_3")
	comesBack(w, p1, ledger.Change{Pauses: []ledger.Pause{p1}}, func(r ledger.Reader) (ledger.Pause, error) {
		found, err := r.Pauses()
		require.Len(w, found, 1)
		return found[0], err
	})
	used := ledger.PoolUse{PoolID: "pol_3", Account: ledger.Account{OrganizationID: "org_3"},
		Usage: fairshare.Usage{At: day, Held: fairshare.Amounts{1.5},
			Idle: fairshare.Amounts{2}, Entered: fairshare.Amounts{3}, Expected: 4, Claimed: 5}}
	byUser := used
	byUser.UserID = "usr_3"
	for _, version := range []ledger.PoolUse{used, byUser} {
		bare := version
		bare.Usage = fairshare.Usage{}
		comesBackAs(w, bare)
		comesBackAs(w, version)
	}
	said := cameOut(openForecast("fct_3", "org_3"), 5)
	said.Seq = 1
	comesBack(w, said, ledger.Change{Forecasts: []ledger.Forecast{said}},
		func(r ledger.Reader) (ledger.Forecast, error) {
			found, err := r.Forecasts(scope, ledger.ForecastFilter{}, 0)
			require.Len(w, found, 1)
			return found[0], err
		})
	orphan := ledger.Orphan{Machine: "i-1", NodeID: "nod_404", GPUs: 8, Source: poolOffering(), BilledFrom: day,
		BilledUntil: day.Add(time.Hour)}
	comesBack(w, orphan, ledger.Change{Orphans: []ledger.Orphan{orphan}}, func(r ledger.Reader) (ledger.Orphan, error) {
		found, err := r.Orphans(ledger.OrphanFilter{})
		require.Len(w, found, 1)
		return found[0], err
	})
	made := ledger.Provisioner{Name: "sim", ReportedAt: day,
		Offers: []ledger.Offer{{Region: "r", Type: "m", Model: "a100", GPUs: 8, MemoryMiB: 1024, Simulated: true,
			Observed: true}}}
	w.mustSave(ledger.Change{Provisioners: []ledger.Provisioner{{Name: "sim", ReportedAt: day.Add(-time.Hour)}}})
	comesBack(w, made, ledger.Change{Provisioners: []ledger.Provisioner{made}},
		func(r ledger.Reader) (ledger.Provisioner, error) {
			found, err := r.Provisioners()
			require.Len(w, found, 1)
			return found[0], err
		})
	seen := fullWatched()
	w.mustSave(ledger.Change{Watched: []ledger.Watched{{Provisioner: "sim", Mark: "16", At: day.Add(-time.Minute)}}})
	comesBack(w, seen, ledger.Change{Watched: []ledger.Watched{seen}},
		func(r ledger.Reader) (ledger.Watched, error) { return r.Watched("sim") })
	// Seals, the pepper, daemons, what GPUs did, and turns, ranks, input, output and predicted starts of jobs have
	// tests of their own: sealsComeBack, theFirstPepperStays, daemonsAreFound, stretchesAreFound, jobsAreFound.
	fields := reflect.TypeFor[ledger.Change]().NumField()
	require.Equal(w, 38, fields, "a kind of row was added: add it here, and to everyFieldCanChange")
}

// comesBackAs replaces what was known of an account's use of a pool.
func comesBackAs(w *world, use ledger.PoolUse) {
	w.Helper()
	w.mustSave(ledger.Change{Uses: []ledger.PoolUse{use}})
	state := readValue(w, func(r ledger.Reader) (ledger.PoolState, error) { return r.PoolState(use.PoolID) })
	require.Contains(w, state.Uses, use)
	require.True(w, slices.IsSortedFunc(state.Uses, func(a, b ledger.PoolUse) int {
		return ledger.CompareAccounts(a.Account, b.Account)
	}))
}

// everyFieldCanChange stores bare rows and then full ones over them: an update that
// names too few columns, or skips zeros, shows in one of the two directions.
func everyFieldCanChange(w *world) {
	saveGround(w)
	p, bare := newPool("pol_3"), newPool("pol_3")
	p.Observed, p.Holders.Default = true, "org_1"
	bare.Learned = learned.Learned{}
	bare.Price, bare.MinNodes, bare.Paused, bare.Simulated = 0, 0, false, false
	bare.Region, bare.Timers = "", capacity.Timers{}
	for i, version := range []ledger.Pool{p, bare, p} {
		version.Version = i
		w.mustSave(ledger.Change{Pools: []ledger.Pool{version}})
		version.Version++
		require.Equal(w, version, readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_3") }))
	}
	r := bookedReservation(w, "rsv_3", "org_1", "pol_3", day)
	empty := r
	empty.Slots, empty.Degraded, empty.Probability, empty.Cost, empty.Name, empty.Reason = nil, false, 0, 0, "", ""
	for i, version := range []reservation.Reservation{r, empty, r} {
		version.Version = i
		w.mustSave(ledger.Change{Reservations: []reservation.Reservation{version}})
		version.Version++
		require.Equal(w, version, readValue(w, func(r ledger.Reader) (reservation.Reservation, error) {
			return r.Reservation(everything, "rsv_3")
		}))
	}
	shown, open := newPreview("pln_3", "org_1"), newPreview("pln_3", "org_1")
	open.AppliedAt, open.Status, open.Answer = time.Time{}, 0, []byte{}
	for i, version := range []ledger.Preview{open, shown, open} {
		version.Version = i
		w.mustSave(ledger.Change{Plans: []ledger.Preview{version}})
		version.Version++
		require.Equal(w, version,
			readValue(w, func(r ledger.Reader) (ledger.Preview, error) { return r.Preview(everything, "pln_3") }))
	}
	n := readyNode(w, "nod_3", "pol_3", 5, day)
	swapped := n
	swapped.Devices = []capacity.Device{{UUID: "GPU-new", Index: 0, Model: "H100", MemoryMiB: 1}}
	for i, version := range []node.Node{n, swapped, n} {
		version.Version = i
		w.mustSave(ledger.Change{Nodes: []node.Node{version}})
		version.Version++
		require.Equal(w, version, readValue(w, func(r ledger.Reader) (node.Node, error) { return r.Node("nod_3") }))
	}
}

func whatIsMissingIsNotFound(w *world) {
	w.readSnapshot(func(r ledger.Reader) error {
		for name, ask := range map[string]func() error{
			"organization": func() error { _, err := r.Organization(everything, "x"); return err },
			"user":         func() error { _, err := r.User(everything, "x"); return err },
			"key":          func() error { _, err := r.Key(everything, "x"); return err },
			"pool":         func() error { _, err := r.Pool("x"); return err },
			"pool state":   func() error { _, err := r.PoolState("x"); return err },
			"node":         func() error { _, err := r.Node("x"); return err },
			"reservation":  func() error { _, err := r.Reservation(everything, "x"); return err },
			"allocation":   func() error { _, err := r.Allocation(everything, "x"); return err },
			"schedule":     func() error { _, err := r.Schedule(everything, "x"); return err },
			"task":         func() error { _, err := r.Task("x"); return err },
		} {
			require.ErrorIs(w, ask(), ledger.ErrNotFound, name)
		}
		return nil
	})
	for _, o := range []ledger.LockRequest{{Pools: []string{"x"}}, {Organizations: []string{"x"}}} {
		err := w.inTx(func(tx ledger.Tx) error { _, err := tx.Lock(o); return err })
		require.ErrorIs(w, err, ledger.ErrNotFound)
		require.ErrorContains(w, err, " x")
	}
}

func anOldVersionIsRefused(w *world) {
	saveGround(w)
	read := func() ledger.Pool {
		return readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") })
	}
	first, second := read(), read()
	first.Failures = 10
	w.mustSave(ledger.Change{Pools: []ledger.Pool{first}})
	second.Failures = 20
	require.ErrorIs(w, w.save(ledger.Change{Pools: []ledger.Pool{second}}), ledger.ErrConflict)
	require.Equal(w, 10, read().Failures)
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		for range 3 { // read again in between, a row can be saved again
			p, err := tx.Pool("pol_1")
			if err != nil {
				return err
			}
			p.Failures++
			if err := tx.Save(ledger.Change{Pools: []ledger.Pool{p}}); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(w, 13, read().Failures)
	missing := newPool("pol_9")
	missing.Version = 4
	require.ErrorIs(w, w.save(ledger.Change{Pools: []ledger.Pool{missing}}), ledger.ErrConflict)
}

func aTakenNameIsRefused(w *world) {
	saveGround(w)
	w.mustSave(ledger.Change{
		Users: []ledger.User{newUser("usr_1", "org_1")}, Replays: []ledger.Replay{newReplay("org_1", "a")},
	})
	o, p, u := newOrganization("org_9"), newPool("pol_9"), newUser("usr_9", "org_1")
	o.Name, p.Name, u.Email = "name of org_1", "name of pol_1", "usr_1@example.org"
	for name, change := range map[string]ledger.Change{
		"organization": {Organizations: []ledger.Organization{o}},
		"pool":         {Pools: []ledger.Pool{p}},
		"user":         {Users: []ledger.User{u}},
		"same id":      {Pools: []ledger.Pool{newPool("pol_1")}},
		"answer":       {Replays: []ledger.Replay{newReplay("org_1", "a")}},
	} {
		require.ErrorIs(w, w.save(change), ledger.ErrTaken, name)
	}
	u.OrganizationID = "org_2" // the same person may be in two organizations
	w.mustSave(ledger.Change{Users: []ledger.User{u}})
}

func nonsenseIsRefused(w *world) {
	saveGround(w)
	p, o := newPool("pol_9"), newOrganization("org_9")
	k, s := newKey("key_9", "org_1"), newSchedule("sch_9", "org_1", "pol_1")
	r := bookedReservation(w, "rsv_9", "org_1", "pol_1", day)
	backwards := bookedReservation(w, "rsv_8", "org_1", "pol_1", day)
	p.Price, o.Limits.GPUs, k.Role, s.Length, r.Class = -1, -1, "king", -1, "wishful"
	backwards.Window.Start = backwards.Window.End.Add(time.Microsecond)
	forecast := openForecast("fct_9", "org_1")
	unsourced, crossed, surer := forecast, forecast, forecast
	unsourced.Source, crossed.Said.P50, surer.Said.Any = "stars", 0, 1.5
	orphan := bookedReservation(w, "rsv_7", "org_404", "pol_1", day)
	for name, change := range map[string]ledger.Change{
		"negative price":     {Pools: []ledger.Pool{p}},
		"negative limit":     {Organizations: []ledger.Organization{o}},
		"unknown role":       {Keys: []ledger.Key{k}},
		"negative length":    {Schedules: []ledger.Schedule{s}},
		"unknown class":      {Reservations: []reservation.Reservation{r}},
		"window backwards":   {Reservations: []reservation.Reservation{backwards}},
		"unknown source":     {Forecasts: []ledger.Forecast{unsourced}},
		"crossed quantiles":  {Forecasts: []ledger.Forecast{crossed}},
		"more than certain":  {Forecasts: []ledger.Forecast{surer}},
		"nobody's forecast":  {Forecasts: []ledger.Forecast{openForecast("fct_9", "org_404")}},
		"nobody's":           {Reservations: []reservation.Reservation{orphan}},
		"stateless":          {Nodes: []node.Node{{ID: "nod_9", PoolID: "pol_1", Slot: 9}}},
		"in a pool of dream": {Nodes: []node.Node{node.New("nod_9", "pol_404", 0, 1, day)}},
	} {
		err := w.save(change)
		require.Error(w, err, name)
		require.NotErrorIs(w, err, ledger.ErrTaken, name)
		require.NotErrorIs(w, err, ledger.ErrConflict, name)
	}
}
