package api

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// nameFields says which field of an answer names what another one identifies.
// Every answer with both is filled in, so that none is forgotten.
var nameFields = []struct {
	id, name string
	noun     ledger.Noun
}{
	{"PoolID", "PoolName", ledger.NounPool},
	{"OrganizationID", "OrganizationName", ledger.NounOrganization},
	{"UserID", "UserEmail", ledger.NounUser},
	{"MadeBy", "MadeByName", ledger.NounKey},
	{"HeldBy", "HeldByName", ledger.NounKey},
	{"SubmittedBy", "SubmittedByName", ledger.NounKey},
	{"CreatedBy", "CreatedByName", ledger.NounKey},
	{"PausedBy", "PausedByName", ledger.NounKey},
	{"Actor", "ActorName", ledger.NounKey},
	{"KeyID", "KeyName", ledger.NounKey},
}

// unnamed is a field of an answer that waits for its name.
type unnamed struct {
	noun ledger.Noun
	id   string
	name reflect.Value
}

// mostNames is how many names are remembered before they are forgotten.
const mostNames = 20_000

// names remembers what ids stand for. Names never change, so that what is
// remembered cannot be wrong. It is safe for concurrent use.
type names struct {
	mu    sync.Mutex
	known map[string]ledger.Named // by id
}

// fillNames puts names beside the ids of an answer, as far as the actor may see them:
// a key of another organization keeps its name to itself.
func (a *API) fillNames(ctx context.Context, s ledger.Scope, answer any) error {
	var few [4]unnamed
	fields := collectUnnamed(reflect.ValueOf(answer), few[:0])
	if len(fields) == 0 {
		return nil
	}
	if err := a.learnNames(ctx, fields); err != nil {
		return fmt.Errorf("reading names: %w", err)
	}
	a.names.mu.Lock()
	defer a.names.mu.Unlock()
	for _, f := range fields {
		n := a.names.known[f.id]
		if f.noun == ledger.NounPool || s.All || n.OrganizationID == s.OrganizationID && s.OrganizationID != "" {
			f.name.SetString(n.Name)
		}
	}
	return nil
}

// learnNames reads the names that are not known yet, all of a kind at once.
func (a *API) learnNames(ctx context.Context, fields []unnamed) error {
	var wanted map[ledger.Noun][]string
	a.names.mu.Lock()
	if len(a.names.known) > mostNames {
		a.names.known = nil
	}
	for _, f := range fields {
		if _, ok := a.names.known[f.id]; !ok && !slices.Contains(wanted[f.noun], f.id) {
			if wanted == nil {
				wanted = map[ledger.Noun][]string{}
			}
			wanted[f.noun] = append(wanted[f.noun], f.id)
		}
	}
	a.names.mu.Unlock()
	if len(wanted) == 0 {
		return nil
	}
	var found []ledger.Named
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		found = nil
		for noun, ids := range wanted {
			some, err := r.Names(ledger.Scope{All: true}, noun, ids)
			if err != nil {
				return err
			}
			found = append(found, some...)
		}
		return nil
	})
	a.names.mu.Lock()
	defer a.names.mu.Unlock()
	if a.names.known == nil {
		a.names.known = map[string]ledger.Named{}
	}
	for _, n := range found {
		a.names.known[n.ID] = n
	}
	return err
}

// collectUnnamed finds the fields that want a name, at any depth.
func collectUnnamed(v reflect.Value, fields []unnamed) []unnamed {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return fields
		}
		v = v.Elem()
	}
	plan := namePlanOf(v.Type())
	if plan == nil {
		return fields
	}
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			fields = collectUnnamed(v.Index(i), fields)
		}
		return fields
	}
	for _, f := range plan.own {
		id, err := v.FieldByIndexErr(f.id)
		if err != nil || id.String() == "" {
			continue
		}
		if name, err := v.FieldByIndexErr(f.name); err == nil && name.CanSet() {
			fields = append(fields, unnamed{nounOf(f.noun, id.String()), id.String(), name})
		}
	}
	for _, i := range plan.holders {
		fields = collectUnnamed(v.Field(i), fields)
	}
	return fields
}

// nounOf tells schedules from keys: both make reservations.
func nounOf(n ledger.Noun, id string) ledger.Noun {
	if n == ledger.NounKey && strings.HasPrefix(id, ids.Schedule+"_") {
		return ledger.NounSchedule
	}
	return n
}

// namePlan says where values of a type want names: it is made once.
type namePlan struct {
	own     []namedField // of a struct
	holders []int        // its fields that may hold others; of a slice, none
}

type namedField struct {
	id, name []int
	noun     ledger.Noun
}

var namePlans sync.Map // reflect.Type → *namePlan, nil for one without names

// namePlanOf is the plan of a type; nil if no value of it can want a name.
func namePlanOf(t reflect.Type) *namePlan {
	if known, ok := namePlans.Load(t); ok {
		return known.(*namePlan)
	}
	plan := makeNamePlan(t)
	namePlans.Store(t, plan)
	return plan
}

func makeNamePlan(t reflect.Type) *namePlan {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return namePlanOf(t.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	plan := &namePlan{}
	for _, f := range nameFields {
		id, hasID := t.FieldByName(f.id)
		name, hasName := t.FieldByName(f.name)
		if hasID && hasName {
			plan.own = append(plan.own, namedField{id.Index, name.Index, f.noun})
		}
	}
	for i := range t.NumField() {
		if t.Field(i).IsExported() && namePlanOf(t.Field(i).Type) != nil {
			plan.holders = append(plan.holders, i)
		}
	}
	if len(plan.own) == 0 && len(plan.holders) == 0 {
		return nil
	}
	return plan
}
