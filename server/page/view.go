package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// most rows of a table: the page is a glance, lists are the API's.
const most = 100

// shownEvents of the journal.
const shownEvents = 30

// period that the two numbers are about.
const period = 7 * 24 * time.Hour

// view is the page in words.
type view struct {
	Version      string
	Now          string
	Open         bool
	Tenant       bool // sees its own nodes, and no operator's facts
	ZeroWait     string
	Starts       int
	Waste        string
	WasteShare   string
	Pools        []poolRow
	Nodes        []nodeRow
	Queues       []queueRow
	Running      []runningRow
	MoreRunning  int // than those shown
	Reservations []bookingRow
	Allocations  []bookingRow
	Costs        []costRow
	Orphans      []orphanRow
	Events       []eventRow
}

// Pool is a pool to name in the commands that fill an empty table.
func (v view) Pool() string {
	if len(v.Pools) == 0 {
		return "NAME"
	}
	return v.Pools[0].Name
}

// Whole is how many GPUs a node of that pool has, where only whole nodes can be reserved;
// else 0.
func (v view) Whole() int {
	if len(v.Pools) == 0 || !v.Pools[0].Observed {
		return 0
	}
	return v.Pools[0].perNode
}

// OnlyObserved reports whether nobody can be handed GPUs: every pool is one in which a cluster
// places the work.
func (v view) OnlyObserved() bool {
	return len(v.Pools) > 0 && !slices.ContainsFunc(v.Pools, func(p poolRow) bool { return !p.Observed })
}

// Simulated reports whether no machine shown can be a real one.
func (v view) Simulated() bool {
	return len(v.Pools) > 0 && !slices.ContainsFunc(v.Pools, func(p poolRow) bool { return !p.Simulated })
}

type poolRow struct {
	Name, Model, Price, Nodes, Boot, Note string
	Simulated, Observed                   bool

	perNode int // GPUs
}

type nodeRow struct {
	ID, Pool, Source, State, Age, Reason, GPUs, Cost string
	Simulated                                        bool
}

type bookingRow struct {
	ID, Name, Pool, State, GPUs, When, Note string
}

type eventRow struct {
	At, Type, Subject, Message, Actor string
}

// readView reads everything on one snapshot.
func (p *Page) readView(ctx context.Context, s ledger.Scope) (view, error) {
	v := view{Version: p.Version, Open: p.Open}
	recent, err := p.Feed.Recent(ctx, s, shownEvents)
	if err != nil {
		p.Log.WarnContext(ctx, "looking for new events failed", "error", err)
	}
	err = p.Ledger.Store().Read(ctx, func(r ledger.Reader) error {
		now := r.Now()
		v.Now = now.UTC().Format("2006-01-02 15:04:05") + " UTC"
		report, err := r.Report(s, now.Add(-period), now)
		if err != nil {
			return fmt.Errorf("adding up: %w", err)
		}
		v.addNumbers(report, s.All)
		if err := v.addTables(r, p.Ledger.Sight(s), s, now); err != nil {
			return err
		}
		if err := p.addJobs(&v, jobReading{r, s, now}); err != nil {
			return err
		}
		return v.addEvents(r, s, recent)
	})
	return v, err
}

// addNumbers shows the two of them. What being ready costs is of the whole
// installation, and for those to see who see all of it.
func (v *view) addNumbers(r ledger.Report, whole bool) {
	v.ZeroWait, v.Starts = "no starts yet", r.Starts
	if r.Starts > 0 {
		v.ZeroWait = formatPercent(float64(r.ZeroWaits) / float64(r.Starts))
	}
	if !whole {
		v.Waste, v.WasteShare = "–", "for operators to see, as nodes are shared"
		return
	}
	waste := r.IdleWaste()
	v.Waste, v.WasteShare = waste.String(), "nothing spent yet"
	if all := r.Spent(); all > 0 {
		v.WasteShare = formatPercent(float64(waste)/float64(all)) + " of " + all.String()
	}
}

func (v *view) addTables(r ledger.Reader, sight ledger.Sight, s ledger.Scope, now time.Time) error {
	page := ledger.Page{Limit: most}
	pools, err := r.Pools(page)
	if err != nil {
		return fmt.Errorf("listing pools: %w", err)
	}
	nodes, err := r.Nodes(ledger.NodeFilter{Live: true}, page)
	if err != nil {
		return fmt.Errorf("counting nodes: %w", err)
	}
	seen, err := sight.Nodes(r, ledger.NodeFilter{Live: true}, page)
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	newest := ledger.Page{Limit: most, Newest: true}
	reservations, err := r.Reservations(s, ledger.BookingFilter{Live: true}, newest)
	if err != nil {
		return fmt.Errorf("listing reservations: %w", err)
	}
	allocations, err := r.Allocations(s, ledger.BookingFilter{Live: true}, newest)
	if err != nil {
		return fmt.Errorf("listing allocations: %w", err)
	}
	paused, err := pausedFor(r, s)
	if err != nil {
		return err
	}
	makers, err := makersOf(r, s, reservations)
	if err != nil {
		return err
	}
	names := v.addPools(pools, nodes, paused, now)
	v.Tenant = !s.All
	v.addNodes(seen, names, now)
	v.addReservations(reservations, names, makers)
	v.addAllocations(allocations, names, now)
	return v.addMoney(r, s, now)
}

func (v *view) addPools(pools []ledger.Pool, nodes []node.Node, paused string, now time.Time) map[string]string {
	names, ready, live := map[string]string{}, map[string]int{}, map[string]int{}
	for _, n := range nodes {
		live[n.PoolID]++
		if n.State() == node.Ready {
			ready[n.PoolID]++
		}
	}
	for _, p := range pools {
		names[p.ID] = p.Name
		row := poolRow{Name: p.Name, Model: machineOf(p.Pool),
			Price:     money.MicroUSD.String(p.Price) + "/h",
			Nodes:     fmt.Sprintf("%d ready, %d live, at most %d", ready[p.ID], live[p.ID], p.MaxNodes),
			Boot:      p.Boot.P50().Round(time.Second).String() + " / " + p.Boot.P95().Round(time.Second).String(),
			Simulated: p.Simulated, Observed: p.Observed, perNode: p.PerNode}
		switch {
		case p.Recovery.Active():
			row.Note = "only reconciles until an operator confirms: " + p.Recovery.Reason
		case !p.AsksAgain(now).IsZero():
			row.Note = "no source had any; asks again in " + formatSpan(p.AsksAgain(now).Sub(now))
		case p.Paused:
			row.Note = "pre-warming is paused"
		default:
			row.Note = paused
		}
		if p.Observed && row.Note == "" {
			row.Note = "its cluster places the work"
		}
		v.Pools = append(v.Pools, row)
	}
	return names
}

// machineOf says what a node of the pool has.
func machineOf(p capacity.Pool) string {
	text := fmt.Sprintf("%d × %s", p.PerNode/p.Shares(), p.Model)
	if p.Shares() > 1 {
		text += fmt.Sprintf(", %d shares each", p.Shares())
	}
	return text
}

func (v *view) addNodes(nodes []node.Node, names map[string]string, now time.Time) {
	for _, n := range nodes {
		since := n.RequestedAt
		for _, t := range []time.Time{n.BootingAt, n.ReadyAt, n.RetiredAt} {
			if t.After(since) {
				since = t
			}
		}
		row := nodeRow{ID: n.ID, Pool: names[n.PoolID], State: string(n.State()), Age: formatSpan(now.Sub(since)),
			Reason: n.Reason, GPUs: strconv.Itoa(len(n.Devices)), Simulated: n.Simulated}
		if !v.Tenant { // where machines are, and what they cost, is the operators'
			row.Source = offeringPlace(n.Offering)
			if !n.BilledFrom.IsZero() {
				row.Cost = n.Offering.Cost(now.Sub(n.BilledFrom)).String()
			}
		}
		v.Nodes = append(v.Nodes, row)
	}
}

// offeringPlace is where a machine comes from, as short as it can be.
func offeringPlace(s capacity.Offering) string {
	if s.Region == "" {
		return s.Provisioner
	}
	return s.Provisioner + " " + s.Region
}

func (v *view) addReservations(rs []reservation.Reservation, names, makers map[string]string) {
	for _, r := range rs {
		row := bookingRow{ID: r.ID, Name: r.Name, Pool: names[r.PoolID], State: string(r.State()),
			GPUs: strconv.Itoa(r.Shape.GPUs()),
			When: formatWindow(r.Window.Start, r.Window.End),
			Note: cmp.Or(makers[r.MadeBy], string(r.Origin)) + ", " + string(r.Class)}
		if r.Degraded {
			row.Note += ", will be late"
		}
		v.Reservations = append(v.Reservations, row)
	}
}

func (v *view) addAllocations(as []allocation.Allocation, names map[string]string, now time.Time) {
	for _, a := range as {
		row := bookingRow{ID: a.ID, Name: a.Name, Pool: names[a.PoolID], State: string(a.State()),
			GPUs: strconv.Itoa(a.Shape.GPUs())}
		if wait, ok := a.Wait(); ok && a.Observed() {
			row.Name, row.When, row.Note = a.Work.Label(), "placed by the cluster", "waited "+formatSpan(wait)
		} else if ok {
			row.When, row.Note = "lease ends in "+formatSpan(a.LeaseUntil.Sub(now)), "waited "+formatSpan(wait)
		} else {
			row.Note = "waits since " + formatSpan(now.Sub(a.RequestedAt))
		}
		v.Allocations = append(v.Allocations, row)
	}
}

func formatPercent(share float64) string { return fmt.Sprintf("%.1f%%", share*100) }

// formatWindow renders a window as short as it can be.
func formatWindow(from, to time.Time) string {
	end := "15:04:05"
	if from.UTC().YearDay() != to.UTC().YearDay() {
		end = "Jan 2 15:04:05"
	}
	return from.UTC().Format("Jan 2 15:04:05") + "–" + to.UTC().Format(end)
}

// formatSpan renders a duration to its two largest units.
func formatSpan(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
}
