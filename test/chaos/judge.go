package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/test/chaos/audit"
)

// verdict is what was found.
type verdict struct {
	lost, doubled, other []string
	ownerless            audit.Ownerless
	bill, costs          money.MicroUSD
	accounts             []string
	hands                audit.Hands
	jobs                 audit.JobFaults
}

// judgeRun compares what people were told, what the ledger has and what the cloud
// has, and prints the figures. restless is what did not become quiet.
func (g *game) judgeRun(ctx context.Context, restless error) error {
	if ctx.Err() != nil {
		return nil // nobody waits for an answer
	}
	ctx, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	rows, err := audit.Read(ctx, g.site.Postgres.URL(), true)
	if err != nil {
		return err
	}
	bill := g.site.Bill()
	v := verdict{
		lost:      append(rows.Lost(g.journal.Entries()), rows.TakenAway(g.site.Cloud.Took)...),
		doubled:   append(append(g.journal.Doubled(), rows.Doubled(g.journal.Extensions())...), audit.Twins(bill)...),
		ownerless: rows.Ownerless(bill, ownerless), accounts: rows.Accounts(bill),
	}
	for _, m := range bill {
		v.bill += m.Cost
	}
	if v.costs, err = g.readCosts(ctx); err != nil {
		return err
	}
	v.other = g.otherFaults(rows, restless)
	if v.hands, err = g.readHands(rows); err != nil {
		return err
	}
	if v.jobs, err = g.judgeJobs(ctx, rows); err != nil {
		return err
	}
	g.printReport(rows, v)
	return v.failure(g.dir)
}

// readHands judges what visitors of nodes wrote down.
func (g *game) readHands(rows audit.Rows) (audit.Hands, error) {
	f, err := os.Open(g.visitsPath())
	if err != nil {
		return audit.Hands{}, fmt.Errorf("opening the file of visitors: %w", err)
	}
	defer f.Close()
	uses, err := audit.ParseUses(f)
	if err != nil {
		return audit.Hands{}, err
	}
	return audit.ReadHands(uses, rows.Sharing()), nil
}

// readCosts is the total of the report, which all servers must agree on.
func (g *game) readCosts(ctx context.Context) (money.MicroUSD, error) {
	var total provisioners.Price
	for i, s := range g.site.Servers {
		api, err := g.load.Client(s.URL, g.site.Key)
		if err != nil {
			return 0, err
		}
		report, err := api.Costs(ctx, g.begun.Add(-time.Hour), time.Now().Add(time.Hour), "")
		if err != nil {
			return 0, fmt.Errorf("reading the report of costs: %w", err)
		}
		before := total
		if err := total.UnmarshalText([]byte(report.Total.Amount)); err != nil {
			return 0, fmt.Errorf("reading the total of the report of costs: %w", err)
		}
		if i > 0 && before != total {
			return 0, fmt.Errorf("%s reports costs of %s, the server before it %s", s.Name,
				money.MicroUSD(total).Decimal(), money.MicroUSD(before).Decimal())
		}
	}
	return money.MicroUSD(total), nil
}

// otherFaults are faults that no figure counts.
func (g *game) otherFaults(rows audit.Rows, restless error) []string {
	var all []string
	if restless != nil {
		all = append(all, restless.Error())
	}
	for _, v := range invariants.Check(rows.Rows) {
		all = append(all, "at the end: "+v.String())
	}
	g.mu.Lock()
	all = append(all, slices.Sorted(maps.Keys(g.broken))...)
	g.mu.Unlock()
	if !g.site.Cloud.ForeignStands() {
		all = append(all, "the machine of somebody else in the account was ended")
	}
	all = append(all, g.journal.Odd()...)
	logs := g.site.Rack.Logs()
	for _, p := range g.site.Forewarm() {
		logs = append(logs, p.Log())
	}
	for _, log := range logs {
		if line := panicIn(log); line != "" {
			all = append(all, fmt.Sprintf("%s: %s", log, line))
		}
	}
	return all
}

// panicIn returns the first line of a process's log that tells of a panic.
func panicIn(log string) string {
	f, err := os.Open(log) //nolint:gosec // one of ours
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if line := lines.Text(); strings.Contains(line, "panic:") || strings.Contains(line, "fatal error:") {
			return line[:min(len(line), 300)]
		}
	}
	return ""
}

func (v verdict) costDifference() money.MicroUSD {
	if v.bill > v.costs {
		return v.bill - v.costs
	}
	return v.costs - v.bill
}

// failure is everything that is not as it must be.
func (v verdict) failure(dir string) error {
	var all []string
	for _, group := range []struct {
		title string
		found []string
	}{
		{"lost", v.lost}, {"doubled", v.doubled}, {"orphans", v.ownerless.Orphans}, {"two hands", v.hands.TwoHands},
		{"not cleaned", v.hands.Uncleaned}, {"not measured", v.hands.Blind}, {"jobs lost", v.jobs.Lost},
		{"jobs run twice", v.jobs.RunTwice}, {"gangs", v.jobs.Split}, {"preempted", v.jobs.Left},
		{"output", v.jobs.Torn}, {"jobs", v.jobs.Misplaced}, {"jobs", v.jobs.Blind},
		{"also wrong", v.other},
	} {
		for _, text := range group.found {
			all = append(all, group.title+": "+text)
		}
	}
	if v.costDifference() != 0 {
		all = append(all, fmt.Sprintf("the cloud's bill is %s, the report of costs says %s", v.bill.Decimal(),
			v.costs.Decimal()))
		all = append(all, v.accounts...)
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New("not everything is as it must be\n  " + strings.Join(all, "\n  ") +
		"\nlogs, the journal and the database are in " + dir)
}
