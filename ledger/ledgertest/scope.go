package ledgertest

import (
	"reflect"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// scopedArguments are the arguments after the scope for each scoped method of
// Reader: something that org_1 has.
var scopedArguments = map[string][]any{
	"Organization":   {"org_1"},
	"Organizations":  {ledger.Page{}},
	"Names":          {ledger.NounUser, []string{"usr_1"}},
	"FindNamed":      {ledger.NounUser, "usr_1@example.org"},
	"ListNames":      {ledger.NounSchedule},
	"User":           {"usr_1"},
	"Users":          {ledger.Page{}},
	"Key":            {"key_1"},
	"Keys":           {ledger.KeyFilter{}, ledger.Page{}},
	"Reservation":    {"rsv_1"},
	"Reservations":   {ledger.BookingFilter{}, ledger.Page{}},
	"Allocation":     {"alc_1"},
	"Allocations":    {ledger.BookingFilter{}, ledger.Page{}},
	"Schedule":       {"sch_1"},
	"Schedules":      {ledger.Page{}},
	"Job":            {"job_1"},
	"Jobs":           {ledger.JobFilter{}, ledger.Page{}},
	"CountJobs":      {ledger.JobFilter{}},
	"JobPredictions": {day, day.Add(48 * time.Hour)},
	"Events":         {ledger.EventFilter{}, 50},
	"Decisions":      {ledger.DecisionFilter{}, 50},
	"Preview":        {"pln_1"},
	"Forecasts":      {ledger.ForecastFilter{}, 50},
	"Calibrations":   {ledger.CalibrationFilter{}},
	"WorkStarts":     {"pol_1", day.Add(-time.Hour), day.Add(time.Hour)},
	"Report":         {day.Add(-time.Hour), day.Add(time.Hour)},
	"Costs":          {day.Add(-time.Hour), day.Add(time.Hour)},
}

// nobodySeesAnotherTenant calls every method of Reader that takes a scope. It fails
// for a method that scopedArguments lacks, so that none is forgotten.
func nobodySeesAnotherTenant(w *world) {
	change := everyKind(w)
	change.Organizations = append(change.Organizations, newOrganization("org_2"))
	change.Schedules[0].DeletedAt = time.Time{}
	change.Allocations[0].Work = allocation.Work{ID: "17"}
	w.mustSave(change)
	awaitEvents(w, 1)
	tried := 0
	w.readSnapshot(func(r ledger.Reader) error {
		for method := range reflect.TypeFor[ledger.Reader]().Methods() {
			if method.Type.NumIn() == 0 || method.Type.In(0) != reflect.TypeFor[ledger.Scope]() {
				continue
			}
			arguments, ok := scopedArguments[method.Name]
			require.True(w, ok, "%s takes a scope and is not tested", method.Name)
			tried++
			call := reflect.ValueOf(r).MethodByName(method.Name)
			for _, s := range []ledger.Scope{{OrganizationID: "org_1"}, everything} {
				require.True(w, seesTenant(w, call, s, arguments), "%s with %+v", method.Name, s)
			}
			others := []ledger.Scope{{}, {OrganizationID: "org_2"}, {OrganizationID: "org_404"},
				{OrganizationID: "' OR 1=1 --"}}
			for _, s := range others {
				if method.Name == "Organizations" && s.OrganizationID == "org_2" {
					continue // it sees itself
				}
				require.False(w, seesTenant(w, call, s, arguments), "%s with %+v", method.Name, s)
			}
		}
		return nil
	})
	require.Equal(w, len(scopedArguments), tried)
}

// seesTenant reports whether a call gave anything of org_1 away.
func seesTenant(w *world, call reflect.Value, s ledger.Scope, arguments []any) bool {
	w.Helper()
	in := []reflect.Value{reflect.ValueOf(s)}
	for _, a := range arguments {
		in = append(in, reflect.ValueOf(a))
	}
	out := call.Call(in)
	err, _ := out[1].Interface().(error)
	if report, ok := out[0].Interface().(ledger.Report); ok {
		require.NoError(w, err)
		return !reflect.DeepEqual(report, ledger.Report{From: report.From, To: report.To})
	}
	if starts, ok := out[0].Interface().(ledger.WorkStarts); ok {
		require.NoError(w, err)
		return starts.Starts > 0
	}
	if costs, ok := out[0].Interface().(ledger.Costs); ok {
		require.NoError(w, err)
		return len(costs.Lines) > 0
	}
	if out[0].Kind() == reflect.Slice || out[0].Kind() == reflect.Map {
		require.NoError(w, err)
		return out[0].Len() > 0
	}
	if err != nil {
		require.ErrorIs(w, err, ledger.ErrNotFound)
		require.True(w, out[0].IsZero(), "a refusal must carry nothing")
	}
	return err == nil
}

func listsAreFiltered(w *world) {
	first := saveGround(w)
	elsewhere := newPool("pol_3")
	abroad := node.New("nod_3", "pol_3", 0, 1, day)
	abroad.Offering.Provisioner = "aws"
	mine, other := pendingAllocation("alc_3", "org_1", "pol_2", day), fullReservation(w, "rsv_2", "org_1", "pol_2")
	mine.HeldBy, other.MadeBy = "key_2", "key_2"
	mine.UserID, other.UserID, mine.Name, other.Name = "usr_2", "usr_2", "otter", "otter"
	over := applyEvents(w, pendingAllocation("alc_4", "org_1", "pol_2", day.Add(time.Minute)), day.Add(10*time.Minute),
		allocation.Cancel)
	kept := newSchedule("sch_2", "org_1", "pol_1")
	kept.DeletedAt = time.Time{}
	w.mustSave(ledger.Change{
		Pools:        []ledger.Pool{elsewhere},
		Nodes:        []node.Node{fullNode(w, "nod_2", "pol_1", 0), abroad},
		Reservations: []reservation.Reservation{bookedReservation(w, "rsv_1", "org_1", "pol_1", day), other},
		Allocations: []allocation.Allocation{
			activeAllocation(w, "alc_1", "org_1", first, day, 0),
			pendingAllocation("alc_2", "org_2", "pol_2", day), mine, over,
		},
		Schedules: []ledger.Schedule{newSchedule("sch_1", "org_1", "pol_1"), kept},
	})
	w.readSnapshot(func(r ledger.Reader) error {
		nodesAreFiltered(w, r, first)
		bookingsAreFiltered(w, r)
		schedules, err := r.Schedules(everything, ledger.Page{})
		require.NoError(w, err)
		require.Equal(w, []string{"sch_2"}, namesOf(schedules, func(s ledger.Schedule) string { return s.ID }))
		p, err := r.Pool("name of pol_3")
		require.NoError(w, err)
		require.Equal(w, "pol_3", p.ID)
		return nil
	})
}

func nodesAreFiltered(w *world, r ledger.Reader, first node.Node) {
	w.Helper()
	for _, c := range []struct {
		filter ledger.NodeFilter
		want   []string
	}{
		{ledger.NodeFilter{}, []string{"nod_1", "nod_2", "nod_3"}},
		{ledger.NodeFilter{PoolID: "pol_1"}, []string{"nod_1", "nod_2"}},
		{ledger.NodeFilter{Provisioner: "aws"}, []string{"nod_3"}},
		{ledger.NodeFilter{State: []node.State{node.Gone, node.Requested}}, []string{"nod_2", "nod_3"}},
		{ledger.NodeFilter{PoolID: "pol_1", Live: true}, []string{"nod_1"}},
	} {
		nodes, err := r.Nodes(c.filter, ledger.Page{})
		require.NoError(w, err)
		require.Equal(w, c.want, namesOf(nodes, func(n node.Node) string { return n.ID }), "%+v", c.filter)
		if nodes[0].ID == first.ID {
			require.Equal(w, first.Devices, nodes[0].Devices)
		}
	}
}

func bookingsAreFiltered(w *world, r ledger.Reader) {
	w.Helper()
	for _, c := range []struct {
		filter                    ledger.BookingFilter
		reservations, allocations []string
	}{
		{ledger.BookingFilter{}, []string{"rsv_1", "rsv_2"}, []string{"alc_1", "alc_2", "alc_3", "alc_4"}},
		{ledger.BookingFilter{PoolID: "pol_2"}, []string{"rsv_2"}, []string{"alc_2", "alc_3", "alc_4"}},
		{ledger.BookingFilter{UserID: "usr_2"}, []string{"rsv_2"}, []string{"alc_3"}},
		{ledger.BookingFilter{Name: "otter"}, []string{"rsv_2"}, []string{"alc_3"}},
		{ledger.BookingFilter{Name: "nightly"}, []string{"rsv_1"}, []string{}},
		{ledger.BookingFilter{Since: day.Add(9 * time.Minute)}, []string{"rsv_1", "rsv_2"},
			[]string{"alc_1", "alc_2", "alc_3", "alc_4"}},
		{ledger.BookingFilter{Since: day.Add(time.Hour)}, []string{"rsv_2"}, []string{"alc_1", "alc_2", "alc_3"}},
		{ledger.BookingFilter{Until: day.Add(time.Minute)}, []string{"rsv_1"}, []string{"alc_1", "alc_2", "alc_3"}},
		{ledger.BookingFilter{MadeBy: "key_2"}, []string{"rsv_2"}, []string{"alc_3"}},
		{ledger.BookingFilter{Live: true}, []string{"rsv_1"}, []string{"alc_1", "alc_2", "alc_3"}},
		{ledger.BookingFilter{State: []string{"claimed", "active"}}, []string{"rsv_2"}, []string{"alc_1"}},
		{ledger.BookingFilter{State: []string{"') OR (1=1"}}, []string{}, []string{}},
	} {
		reservations, err := r.Reservations(everything, c.filter, ledger.Page{})
		require.NoError(w, err)
		require.Equal(w, c.reservations, namesOf(reservations, func(r reservation.Reservation) string { return r.ID }),
			"%+v", c.filter)
		allocations, err := r.Allocations(everything, c.filter, ledger.Page{})
		require.NoError(w, err)
		require.Equal(w, c.allocations, namesOf(allocations, func(a allocation.Allocation) string { return a.ID }),
			"%+v", c.filter)
	}
}

func namesOf[T any](list []T, name func(T) string) []string {
	all := make([]string, len(list))
	for i, item := range list {
		all[i] = name(item)
	}
	return all
}

// namesAreFound: by id also of what is over, by name only of what is not.
func namesAreFound(w *world) {
	saveGround(w)
	over := newOrganization("org_3")
	over.DeletedAt = day
	again := newOrganization("org_4")
	again.Name = over.Name
	w.mustSave(ledger.Change{Organizations: []ledger.Organization{over, again},
		Users: []ledger.User{newUser("usr_1", "org_1"), newUser("usr_2", "org_2")}})
	named := func(id, name, org string) ledger.Named { return ledger.Named{ID: id, Name: name, OrganizationID: org} }
	w.readSnapshot(func(r ledger.Reader) error {
		found, err := r.FindNamed(everything, ledger.NounOrganization, over.Name)
		require.NoError(w, err)
		require.Equal(w, []ledger.Named{named("org_4", over.Name, "org_4")}, found)
		found, err = r.Names(everything, ledger.NounOrganization, []string{"org_3", "org_404"})
		require.NoError(w, err)
		require.Equal(w, []ledger.Named{named("org_3", over.Name, "org_3")}, found)
		found, err = r.FindNamed(ledger.Scope{}, ledger.NounPool, "name of pol_1")
		require.NoError(w, err)
		require.Equal(w, []ledger.Named{named("pol_1", "name of pol_1", "")}, found)
		found, err = r.FindNamed(everything, ledger.NounNode, "provider's nod_1")
		require.NoError(w, err)
		require.Equal(w, []string{"nod_1"}, namesOf(found, func(n ledger.Named) string { return n.ID }))
		found, err = r.ListNames(ledger.Scope{OrganizationID: "org_2"}, ledger.NounUser)
		require.NoError(w, err)
		require.Equal(w, []ledger.Named{named("usr_2", "usr_2@example.org", "org_2")}, found)
		found, err = r.FindNamed(everything, ledger.NounKey, "' OR 1=1 --")
		require.NoError(w, err)
		require.Empty(w, found)
		return nil
	})
}
