package api

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

// resource is what the first part of a path is of.
type resource struct {
	noun   ledger.Noun // empty: it has ids alone
	prefix string      // of its ids
	word   string      // what people call one
}

var resources = map[string]resource{
	"pools":         {ledger.NounPool, ids.Pool, "pool"},
	"organizations": {ledger.NounOrganization, ids.Organization, "organization"},
	"users":         {ledger.NounUser, ids.User, "user"},
	"keys":          {ledger.NounKey, "", "key"},
	"schedules":     {ledger.NounSchedule, ids.Schedule, "schedule"},
	"nodes":         {ledger.NounNode, ids.Node, "node"},
	"gpus":          {"", "", "GPU"},
	"reservations":  {"", ids.Reservation, "reservation"},
	"allocations":   {"", ids.Allocation, "allocation"},
	"jobs":          {"", ids.Job, "job"},
	"forecasts":     {"", ids.Forecast, "forecast"},
	"decisions":     {"", ids.Decision, "decision"},
	"plans":         {"", ids.Plan, "plan"},
}

var resourcesByNoun = func() map[ledger.Noun]resource {
	out := map[ledger.Noun]resource{}
	for _, r := range resources {
		if r.noun != "" {
			out[r.noun] = r
		}
	}
	return out
}()

// pathResource is the resource that the {id} of a path is of; nil: it has none.
func pathResource(o operation.Operation) *resource {
	first, rest, _ := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
	if !strings.HasPrefix(rest, "{") {
		return nil
	}
	r := resources[first]
	return &r
}

// hasPathID reports whether an operation's input has a place for the {id}.
func hasPathID(input reflect.Type) bool {
	if input.Kind() != reflect.Struct {
		return false
	}
	id, ok := input.FieldByName("ID")
	return ok && id.Type.Kind() == reflect.String
}

// pathID is that place.
func pathID(in any) reflect.Value { return reflect.ValueOf(in).Elem().FieldByName("ID") }

// resolvePathID replaces a name in the path of a request by the id that it stands for,
// so that every route takes both.
func (a *API) resolvePathID(ctx context.Context, subject *resource, place reflect.Value) error {
	if subject == nil || subject.noun == "" || subject.isID(place.String()) {
		return nil
	}
	actor := auth.From(ctx)
	if subject.noun == ledger.NounNode && actor.Role != ledger.Operator {
		return ledger.ErrNotFound // providers' ids are the operators'
	}
	return a.readSnapshot(ctx, func(r ledger.Reader) error {
		id, err := findByName(r, actor.Scope(), subject.noun, place.String())
		if err == nil {
			place.SetString(id)
		}
		return err
	})
}

// isID reports whether text has the form of the resource's ids.
func (r resource) isID(text string) bool { return r.prefix != "" && ids.Check(r.prefix, text) == nil }

// findByName returns the id of what has an id or name. An id always wins, so that
// nobody can hide a thing behind another's name. ErrNotFound when there is none
// that the scope may see, and a problem with the candidates when there are
// several.
func findByName(r ledger.Reader, s ledger.Scope, n ledger.Noun, idOrName string) (string, error) {
	known, err := r.Names(s, n, []string{idOrName})
	if err != nil || len(known) > 0 {
		return idOrName, err
	}
	if resourcesByNoun[n].isID(idOrName) {
		return "", ledger.ErrNotFound
	}
	found, err := r.FindNamed(s, n, idOrName)
	if address := ledger.CanonicalEmail(idOrName); err == nil && len(found) == 0 && n == ledger.NounUser &&
		address != idOrName {
		found, err = r.FindNamed(s, n, address)
	}
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", ledger.ErrNotFound
	case len(found) > 1:
		return "", ambiguousName(r, n, idOrName, found)
	}
	return found[0].ID, nil
}

// ambiguousName refuses a name that several things have.
func ambiguousName(r ledger.Reader, n ledger.Noun, name string, found []ledger.Named) error {
	word := resourcesByNoun[n].word
	owners := map[string]string{}
	p := problem.New(contract.CodeAmbiguousName, fmt.Sprintf("%d %ss are named %q.", len(found), word, name))
	allowed := make([]string, len(found))
	for i, one := range found {
		if _, known := owners[one.OrganizationID]; !known {
			o, err := r.Organization(ledger.Scope{All: true}, one.OrganizationID)
			if err != nil {
				return err
			}
			owners[one.OrganizationID] = o.Name
		}
		allowed[i] = one.ID
		p = p.Fix(fmt.Sprintf("Use %s for the one of organization %s", one.ID, owners[one.OrganizationID]), "")
	}
	return p.Field(contract.FieldError{Pointer: "id", Code: "ambiguous", Message: "must be an id: the name fits several",
		Allowed: allowed})
}

// notFoundProblem says what there is not, where, and which name is close.
func (a *API) notFoundProblem(ctx context.Context, subject resource, name string) *problem.Problem {
	actor := auth.From(ctx)
	detail := fmt.Sprintf("There is no %s %q", subject.word, name)
	if own := a.ownName(ctx, actor); own != "" && actor.Role != ledger.Operator && subject.noun != ledger.NounPool &&
		subject.noun != ledger.NounNode {
		detail += fmt.Sprintf(" in organization %q", own)
	}
	p := problem.New(contract.CodeNotFound, detail+".")
	if near := a.nearestName(ctx, actor, subject, name); near != "" {
		p.Detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	return p
}

// ownName is the name of the actor's organization; empty when there is none.
func (a *API) ownName(ctx context.Context, actor ledger.Actor) string {
	out := contract.Whoami{OrganizationID: actor.OrganizationID}
	_ = a.fillNames(ctx, actor.Scope(), &out) // without it the sentence is shorter
	return out.OrganizationName
}

// nearestName is the name that was probably meant; empty when none is close.
func (a *API) nearestName(ctx context.Context, actor ledger.Actor, subject resource, name string) string {
	people := subject.noun == ledger.NounUser || subject.noun == ledger.NounKey
	if subject.noun == "" || subject.noun == ledger.NounNode || subject.isID(name) ||
		people && actor.Kind == ledger.AgentKey { // who may list neither learns no address
		return ""
	}
	var near string
	_ = a.readSnapshot(ctx, func(r ledger.Reader) error { // without it there is no advice
		known, err := r.ListNames(actor.Scope(), subject.noun)
		all := make([]string, len(known))
		for i, n := range known {
			all[i] = n.Name
		}
		near, _ = problem.Closest(name, all)
		return err
	})
	return near
}

// resolveParameter resolves a query parameter that names something; empty is nothing.
func (a *API) resolveParameter(ctx context.Context, r ledger.Reader, s ledger.Scope, n ledger.Noun, name,
	idOrName string) (string, error) {
	if idOrName == "" {
		return "", nil
	}
	id, err := findByName(r, s, n, idOrName)
	if errors.Is(err, ledger.ErrNotFound) {
		return "", &nothingNamed{noun: n, name: idOrName, parameter: name}
	}
	return id, a.problemAt(ctx, n, idOrName, err, contract.CodeInvalidParameter, name)
}

// nothingNamed is a query parameter that names nothing. What could be meant is looked up
// when the transaction is over in which this came up: one inside another can wait
// for the other's connection until both give up.
type nothingNamed struct {
	noun            ledger.Noun
	name, parameter string
}

// Error names what there is not.
func (e *nothingNamed) Error() string { return fmt.Sprintf("%s: there is no %q", e.parameter, e.name) }

// Unwrap makes it what anything is that there is not.
func (e *nothingNamed) Unwrap() error { return ledger.ErrNotFound }

// resolveField resolves a field of a body that names something; empty is nothing.
func (a *API) resolveField(ctx context.Context, n ledger.Noun, name, idOrName string) (id string, err error) {
	if idOrName == "" {
		return "", nil
	}
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		id, err = findByName(r, auth.From(ctx).Scope(), n, idOrName)
		return err
	})
	return id, a.problemAt(ctx, n, idOrName, err, contract.CodeValidationFailed, "/"+name)
}

// problemAt turns what is not there, or is there more than once, into a problem of
// the place that named it.
func (a *API) problemAt(ctx context.Context, n ledger.Noun, idOrName string, err error, code, pointer string) error {
	p, _ := problem.From(err)
	switch {
	case err == nil:
		return nil
	case p.Code == contract.CodeNotFound:
		found := a.notFoundProblem(ctx, resourcesByNoun[n], idOrName)
		p = problem.New(code, found.Detail).Field(contract.FieldError{Pointer: pointer, Code: "unknown",
			Message: found.Detail})
		p.Fixes = found.Fixes
	case p.Code == contract.CodeAmbiguousName:
		p.Errors[0].Pointer = pointer
	default:
		return err
	}
	return p
}

// OfOrganization narrows a list to one tenant.
type OfOrganization struct {
	Organization string `query:"organization" maxLength:"64" doc:"Id or name. Default: your own; for operators, all."`
}

// requestedScope is what a request may see and wants to.
func (a *API) requestedScope(ctx context.Context, r ledger.Reader, in OfOrganization) (ledger.Scope, error) {
	s := auth.From(ctx).Scope()
	id, err := a.resolveParameter(ctx, r, s, ledger.NounOrganization, "organization", in.Organization)
	if id != "" {
		s = ledger.Scope{OrganizationID: id}
	}
	return s, err
}
