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
	var fields []unnamed
	collectUnnamed(reflect.ValueOf(answer), &fields)
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
	wanted := map[ledger.Noun][]string{}
	a.names.mu.Lock()
	if len(a.names.known) > mostNames {
		a.names.known = nil
	}
	for _, f := range fields {
		if _, ok := a.names.known[f.id]; !ok && !slices.Contains(wanted[f.noun], f.id) {
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
func collectUnnamed(v reflect.Value, fields *[]unnamed) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			collectUnnamed(v.Elem(), fields)
		}
	case reflect.Slice:
		if holdsNames(v.Type().Elem()) {
			for i := range v.Len() {
				collectUnnamed(v.Index(i), fields)
			}
		}
	case reflect.Struct:
		if !holdsNames(v.Type()) {
			return
		}
		for _, f := range nameFields {
			id, name := v.FieldByName(f.id), v.FieldByName(f.name)
			if id.IsValid() && name.IsValid() && name.CanSet() && id.String() != "" {
				*fields = append(*fields, unnamed{nounOf(f.noun, id.String()), id.String(), name})
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collectUnnamed(v.Field(i), fields)
			}
		}
	}
}

// nounOf tells schedules from keys: both make reservations.
func nounOf(n ledger.Noun, id string) ledger.Noun {
	if n == ledger.NounKey && strings.HasPrefix(id, ids.Schedule+"_") {
		return ledger.NounSchedule
	}
	return n
}

var typesWithNames sync.Map // reflect.Type → bool

// holdsNames reports whether a value of the type may hold a field that wants a
// name.
func holdsNames(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	if known, ok := typesWithNames.Load(t); ok {
		return known.(bool)
	}
	holds := slices.ContainsFunc(nameFields, func(f struct {
		id, name string
		noun     ledger.Noun
	},
	) bool {
		_, ok := t.FieldByName(f.name)
		return ok
	})
	for i := range t.NumField() {
		holds = holds || t.Field(i).IsExported() && holdsNames(t.Field(i).Type)
	}
	typesWithNames.Store(t, holds)
	return holds
}
