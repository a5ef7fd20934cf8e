package load

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// newcomer makes what a tenant consists of, one key after another.
type newcomer struct {
	*Load
	Config
	operator *client.Client
	number   int
	id       string
}

// createTenant makes one tenant with its people, its holders, those who submit jobs, and its agent.
func (l *Load) createTenant(ctx context.Context, cfg Config, operator *client.Client, n int, poolIDs []string) error {
	org, err := operator.CreateOrganization(ctx, contract.OrganizationCreate{Name: fmt.Sprintf("tenant-%d", n+1),
		Limits: contract.Limits{MaxGPUs: cfg.MaxGPUs, SpeculationPerDay: dollarMoney("1000")}})
	if err != nil {
		return fmt.Errorf("making the organization: %w", err)
	}
	t := newcomer{l, cfg, operator, n + 1, org.ID}
	admin, _, err := t.createKey(ctx, contract.KeyCreate{Name: "admin", Kind: "person", Role: "admin"})
	if err != nil {
		return err
	}
	l.tenants = append(l.tenants, &Tenant{ID: org.ID, API: admin})
	if err := t.addPeople(ctx); err != nil {
		return err
	}
	if err := t.addHolders(ctx); err != nil {
		return err
	}
	if err := t.addSubmitters(ctx); err != nil {
		return err
	}
	return t.addAgent(ctx, poolIDs)
}

func (t newcomer) createKey(ctx context.Context, in contract.KeyCreate) ([]*client.Client, batchClient, error) {
	in.OrganizationID = t.id
	made, err := t.operator.CreateKey(ctx, in)
	if err != nil {
		return nil, batchClient{}, fmt.Errorf("making a key: %w", err)
	}
	return t.newClients(made.Secret)
}

func (t newcomer) addPeople(ctx context.Context) error {
	for i := range t.People {
		servers, d, err := t.createKey(ctx, contract.KeyCreate{Name: fmt.Sprintf("person-%d", i), Kind: "person",
			Role: "member"})
		if err != nil {
			return err
		}
		t.people = append(t.people, &person{caller: t.newCaller(t.Seed, t.id, servers), batches: d,
			name: fmt.Sprintf("t%d-p%d", t.number, i+1), pools: t.Pools})
	}
	return nil
}

// addHolders adds those who visit nodes. The first of them comes at all times.
func (t newcomer) addHolders(ctx context.Context) error {
	for i := range t.Holders {
		servers, _, err := t.createKey(ctx, contract.KeyCreate{Name: fmt.Sprintf("holder-%d", i), Kind: "person",
			Role: "member"})
		if err != nil {
			return err
		}
		v := t.newVisitor(t.newCaller(t.Seed, t.id, servers), fmt.Sprintf("t%d-h%d", t.number, i+1))
		t.holders = append(t.holders, &holder{visitor: v, steady: i == 0})
	}
	return nil
}

// addSubmitters adds those who submit jobs.
func (t newcomer) addSubmitters(ctx context.Context) error {
	for i := range t.Jobs {
		servers, _, err := t.createKey(ctx, contract.KeyCreate{Name: fmt.Sprintf("jobs-%d", i), Kind: "person",
			Role: "member"})
		if err != nil {
			return err
		}
		t.jobs = append(t.jobs, &submitter{caller: t.newCaller(t.Seed, t.id, servers), Visits: t.visits,
			name: fmt.Sprintf("t%d-j%d", t.number, i+1)})
	}
	return nil
}

func (t newcomer) addAgent(ctx context.Context, poolIDs []string) error {
	servers, _, err := t.createKey(ctx, contract.KeyCreate{Name: "agent", Kind: "agent", Role: "member",
		Caps: &contract.Caps{MaxGPUs: 4, MaxPerDay: dollarMoney("500"), MaxLeadSeconds: 3600, MaxWindowSeconds: 3600}})
	if err != nil {
		return err
	}
	t.agents = append(t.agents, &agent{caller: t.newCaller(t.Seed, t.id, servers),
		name: fmt.Sprintf("t%d-agent", t.number), pools: poolIDs})
	return nil
}

func dollarMoney(amount string) contract.Money {
	return contract.Money{Amount: amount, Currency: "USD"}
}
