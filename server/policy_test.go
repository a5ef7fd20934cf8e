package server_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

func TestEveryRouteHasAPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	routes, policies := w.server.Routes(), w.server.Policies()
	for _, r := range routes {
		require.Contains(t, policies, r, "a route without a policy answers nobody: give it one")
	}
	for r, p := range policies {
		require.Contains(t, routes, r, "a policy without a route guards nothing")
		require.True(t, p.Public || p.Role != "" && (p.Person || p.Agent) || p.Role == "" && p.Node != p.Join, r)
		require.False(t, p.Public && strings.Contains(r, " /v1/"), "%s: nothing under /v1 is public", r)
	}
}

// Every guarded route refuses who may not use it, whatever the request.
func TestEveryRouteRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ranks := []string{"viewer", "member", "admin", "operator"}
	for _, role := range ranks {
		w.createKey(role, role)
	}
	w.createAgentKey("agent")
	for _, route := range w.server.Routes() {
		policy := w.server.Policies()[route]
		if policy.Public {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		path = strings.Replace(path, ":id", "rsv_00000000000000000000000001", 1)
		require.Equal(t, contract.CodeUnauthenticated, w.refuse("", method, path, "").Code, route)
		for _, role := range ranks {
			if !policy.Person || slices.Index(ranks, role) < slices.Index(ranks, string(policy.Role)) {
				require.Equal(t, contract.CodePermissionDenied, w.refuse(role, method, path, "").Code, "%s as %s",
					route, role)
			}
		}
		if !policy.Agent {
			require.Equal(t, contract.CodePermissionDenied, w.refuse("agent", method, path, "").Code, "%s as an agent",
				route)
		}
	}
}

// What an agent may do is a list that grows only on purpose.
func TestAgentsRoutes(t *testing.T) {
	t.Parallel()
	var got []string
	for route, p := range newWorld(t).server.Policies() {
		if p.Agent {
			got = append(got, route)
		}
	}
	slices.Sort(got)
	require.Equal(t, []string{
		"DELETE /v1/reservations/:id", "GET /v1/decisions", "GET /v1/decisions/:id",
		"GET /v1/forecasts", "GET /v1/forecasts/:id", "GET /v1/plans/:id", "GET /v1/pools", "GET /v1/pools/:id",
		"GET /v1/prewarm", "GET /v1/reservations", "GET /v1/reservations/:id", "GET /v1/reservations/:id/explain",
		"GET /v1/version",
		"GET /v1/whoami", "POST /v1/forecasts", "POST /v1/forecasts/outcomes", "POST /v1/plans",
		"POST /v1/plans/:id/apply", "PUT /v1/agent/plan",
	}, got)
}

// The contract may import nothing of ours, so its enums are compared here.
func TestEnumsAreThoseOfCore(t *testing.T) {
	t.Parallel()
	require.Equal(t, allocation.Machine.Names(), contract.AllocationStates)
	require.Equal(t, reservation.Machine.Names(), contract.ReservationStates)
	require.Equal(t, node.Machine.Names(), contract.NodeStates)
	require.Equal(t, []string{string(reservation.Guaranteed), string(reservation.Speculative)}, contract.Classes)
	require.Equal(t, []string{string(reservation.FromPerson), string(reservation.FromSchedule),
		string(reservation.FromAgent)}, contract.Origins)
	require.Len(t, contract.DecisionKinds, len(ledger.DecisionKinds))
	for i, k := range ledger.DecisionKinds {
		require.Equal(t, string(k), contract.DecisionKinds[i])
	}
	require.Len(t, contract.ForecastSources, len(ledger.ForecastSources))
	for i, s := range ledger.ForecastSources {
		require.Equal(t, string(s), contract.ForecastSources[i])
	}
	require.Equal(t, []string{string(ledger.ForecastOpen), string(ledger.ForecastClosed)}, contract.ForecastStates)
	for _, c := range []struct {
		of    any
		field string
		want  []string
	}{
		{contract.Allocation{}, "State", contract.AllocationStates},
		{contract.Reservation{}, "State", contract.ReservationStates},
		{contract.Node{}, "State", contract.NodeStates}, {contract.GPU{}, "NodeState", contract.NodeStates},
		{contract.Reservation{}, "Class", contract.Classes}, {contract.Reservation{}, "Origin", contract.Origins},
		{contract.Key{}, "Role", contract.Roles}, {contract.AgentWindow{}, "ReasonCode", contract.ReasonCodes},
		{contract.Decision{}, "Kind", contract.DecisionKinds}, {contract.PlanCreate{}, "Kind", contract.PlanKinds},
		{contract.Plan{}, "Kind", contract.PlanKinds},
		{contract.AgentForecast{}, "Source", contract.ForecastSources},
		{contract.AgentForecast{}, "ReasonCode", contract.ReasonCodes},
		{contract.Forecast{}, "Source", contract.ForecastSources},
		{contract.Forecast{}, "ReasonCode", contract.ReasonCodes},
		{contract.Forecast{}, "State", contract.ForecastStates},
		{contract.SourceCalibration{}, "Source", contract.ForecastSources},
	} {
		f, ok := reflect.TypeOf(c.of).FieldByName(c.field)
		require.True(t, ok)
		require.Equal(t, strings.Join(c.want, ","), contract.Tag(reflect.TypeOf(c.of), f).Get("enum"), "%T.%s", c.of,
			c.field)
	}
}

// Privacy by type: nothing that an agent sends has a field that could hold a
// sentence.
func TestAgentsSendNoWords(t *testing.T) {
	t.Parallel()
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			inner := f.Type
			for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			switch inner.Kind() {
			case reflect.String:
				tag := contract.Tag(typ, f)
				require.NotEmpty(t, tag.Get("enum")+tag.Get("pattern"), "%s.%s is free text", typ, f.Name)
			case reflect.Map, reflect.Interface:
				t.Errorf("%s.%s can hold anything", typ, f.Name)
			case reflect.Struct:
				if inner.PkgPath() != "time" {
					walk(inner)
				}
			}
		}
	}
	for _, sent := range []any{contract.AgentPlan{}, contract.AgentForecasts{}, contract.AgentOutcomes{}} {
		walk(reflect.TypeOf(sent))
	}
}

func TestRoutesThatDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, contract.CodeNotFound, w.refuse("root", http.MethodGet, "/v1/nothing", "").Code)
	require.Equal(t, contract.CodeNotFound, w.refuse("", http.MethodGet, "/.env", "").Code)
	p := w.refuse("root", http.MethodDelete, "/v1/pools", "")
	require.Equal(t, contract.CodeMethodNotAllowed, p.Code)
	require.Contains(t, fmt.Sprint(p.Fixes), "GET")
}
