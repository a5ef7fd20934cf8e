package gcetest

import (
	"net/http"
	"time"
)

// find returns the instance of the request's zone and name that is there.
func (c *Cloud) find(r *http.Request, now time.Time) (*machine, error) {
	zone, name := r.PathValue("zone"), r.PathValue("instance")
	if m := c.standing(zone, name, now); m != nil {
		return m, nil
	}
	return nil, refuse(http.StatusNotFound, "notFound",
		"The resource 'projects/%s/zones/%s/instances/%s' was not found", c.config.Project, zone, name)
}

func (c *Cloud) standing(zone, name string, now time.Time) *machine {
	for _, m := range c.machines {
		if m.zone == zone && m.name == name && m.there(now) {
			return m
		}
	}
	return nil
}

func (c *Cloud) get(r *http.Request, now time.Time) (any, error) {
	m, err := c.find(r, now)
	if err != nil {
		return nil, err
	}
	return c.render(m, now), nil
}

func (c *Cloud) remove(r *http.Request, now time.Time) (any, error) {
	m, err := c.find(r, now)
	if err != nil {
		return nil, err
	}
	if !m.gone.IsZero() && !m.never() && m.preempted.IsZero() {
		return nil, refuse(http.StatusBadRequest, "resourceNotReady", "The resource '%s' is not ready",
			c.instanceLink(m))
	}
	if faultOf(r).Effect == Ignore {
		return c.renderOperation(c.record(&operation{kind: "delete", machine: m, begun: now, ended: now}), now), nil
	}
	m.gone = now.Add(c.config.Deleting)
	if m.stopping.IsZero() {
		m.stopping = now
	}
	if m.stopped.After(m.gone) {
		m.stopped = m.gone
	}
	if m.insert != nil && !reached(m.insert.ended, now) { // it is cancelled by its own end
		m.insert.ended, m.insert.code, m.insert.message = now, "CONFLICT",
			"The instance was deleted while it was being created."
	}
	op := c.record(&operation{kind: "delete", machine: m, requestID: r.URL.Query().Get("requestId"), begun: now,
		ended: m.gone})
	return c.renderOperation(op, now), nil
}

func (c *Cloud) listInstances(r *http.Request, now time.Time) (any, error) {
	rows, next, err := c.page(r, c.shown(now, func(m *machine) bool { return m.zone == r.PathValue("zone") }))
	if err != nil {
		return nil, err
	}
	return object{"kind": "compute#instanceList", "items": rows, "nextPageToken": next}, nil
}

// shown renders instances as a list shows them, which may be late.
func (c *Cloud) shown(now time.Time, keep func(*machine) bool) []object {
	then := now.Add(-c.listLag)
	var rows []object
	for _, m := range c.machines {
		if m.there(then) && keep(m) {
			rows = append(rows, c.render(m, then))
		}
	}
	return rows
}

// aggregatedList pages over all zones. A zone without rows on a page says so in
// a warning, as the service does.
func (c *Cloud) aggregatedList(r *http.Request, now time.Time) (any, error) {
	missing := ""
	if faultOf(r).Effect == Partial {
		if missing = c.busiest(now); r.URL.Query().Get("returnPartialSuccess") != "true" {
			return nil, refuse(http.StatusServiceUnavailable, "backendError", "The zone '%s' cannot be reached.",
				missing)
		}
	}
	rows, next, err := c.page(r, c.shown(now, func(m *machine) bool { return m.zone != missing }))
	if err != nil {
		return nil, err
	}
	items := object{}
	for _, zone := range c.config.Zones {
		items["zones/"+zone] = c.scope(zone, missing, rows)
	}
	answer := object{"kind": "compute#instanceAggregatedList", "items": items, "nextPageToken": next}
	if missing != "" {
		answer["unreachables"] = []string{"projects/" + c.config.Project + "/zones/" + missing}
	}
	return answer, nil
}

func (c *Cloud) scope(zone, missing string, rows []object) object {
	if zone == missing {
		return object{"warning": object{"code": "UNREACHABLE", "message": "The zone cannot be reached."}}
	}
	var instances []object
	for _, row := range rows {
		if row["zone"] == c.link("zones", zone) {
			instances = append(instances, row)
		}
	}
	if instances == nil {
		return object{"warning": object{"code": "NO_RESULTS_ON_PAGE",
			"message": "There are no results for scope 'zones/" + zone + "' on this page."}}
	}
	return object{"instances": instances}
}

// busiest returns the zone of the oldest instance that is there, else the first.
func (c *Cloud) busiest(now time.Time) string {
	for _, m := range c.machines {
		if m.there(now) && !m.foreign {
			return m.zone
		}
	}
	return c.config.Zones[0]
}
