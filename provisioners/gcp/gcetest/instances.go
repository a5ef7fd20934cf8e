package gcetest

import (
	"net/http"
	"time"
)

// findInstance returns the instance of the request's zone and name that is there.
func (c *Cloud) findInstance(r *http.Request, now time.Time) (*machine, error) {
	zone, name := r.PathValue("zone"), r.PathValue("instance")
	if m := c.findMachine(zone, name, now); m != nil {
		return m, nil
	}
	return nil, newRefusal(http.StatusNotFound, "notFound",
		"The resource 'projects/%s/zones/%s/instances/%s' was not found", c.config.Project, zone, name)
}

func (c *Cloud) findMachine(zone, name string, now time.Time) *machine {
	for _, m := range c.machines {
		if m.zone == zone && m.name == name && m.existsAt(now) {
			return m
		}
	}
	return nil
}

func (c *Cloud) getInstance(r *http.Request, now time.Time) (any, error) {
	m, err := c.findInstance(r, now)
	if err != nil {
		return nil, err
	}
	return c.config.renderMachine(m, now), nil
}

func (c *Cloud) deleteInstance(r *http.Request, now time.Time) (any, error) {
	m, err := c.findInstance(r, now)
	if err != nil {
		return nil, err
	}
	if !m.gone.IsZero() && !m.neverMade() && m.preempted.IsZero() {
		return nil, newRefusal(http.StatusBadRequest, "resourceNotReady", "The resource '%s' is not ready",
			c.config.instanceLink(m))
	}
	if faultOf(r).Effect == Ignore {
		return c.config.renderOperation(c.recordOperation(&operation{kind: "delete", machine: m, begun: now,
			ended: now}), now), nil
	}
	m.gone = now.Add(c.config.Deleting)
	if m.stopping.IsZero() {
		m.stopping = now
	}
	if m.stopped.After(m.gone) {
		m.stopped = m.gone
	}
	if m.insert != nil && !hasReached(m.insert.ended, now) { // it is cancelled by its own end
		m.insert.ended, m.insert.code, m.insert.message = now, "CONFLICT",
			"The instance was deleted while it was being created."
	}
	op := c.recordOperation(&operation{kind: "delete", machine: m, requestID: r.URL.Query().Get("requestId"),
		begun: now,
		ended: m.gone})
	return c.config.renderOperation(op, now), nil
}

func (c *Cloud) listInstances(r *http.Request, now time.Time) (any, error) {
	rows, next, err := c.config.cutPage(r, c.listedInstances(now,
		func(m *machine) bool { return m.zone == r.PathValue("zone") }))
	if err != nil {
		return nil, err
	}
	return object{"kind": "compute#instanceList", "items": rows, "nextPageToken": next}, nil
}

// listedInstances renders instances as a list shows them, which may be late.
func (c *Cloud) listedInstances(now time.Time, keep func(*machine) bool) []object {
	then := now.Add(-c.listLag)
	var rows []object
	for _, m := range c.machines {
		if m.existsAt(then) && keep(m) {
			rows = append(rows, c.config.renderMachine(m, then))
		}
	}
	return rows
}

// aggregatedList pages over all zones. A zone without rows on a page says so in
// a warning, as the service does.
func (c *Cloud) aggregatedList(r *http.Request, now time.Time) (any, error) {
	missing := ""
	if faultOf(r).Effect == Partial {
		if missing = c.oldestZone(now); r.URL.Query().Get("returnPartialSuccess") != "true" {
			return nil, newRefusal(http.StatusServiceUnavailable, "backendError", "The zone '%s' cannot be reached.",
				missing)
		}
	}
	rows, next, err := c.config.cutPage(r, c.listedInstances(now, func(m *machine) bool { return m.zone != missing }))
	if err != nil {
		return nil, err
	}
	items := object{}
	for _, zone := range c.config.Zones {
		items["zones/"+zone] = c.config.zoneScope(zone, missing, rows)
	}
	answer := object{"kind": "compute#instanceAggregatedList", "items": items, "nextPageToken": next}
	if missing != "" {
		answer["unreachables"] = []string{"projects/" + c.config.Project + "/zones/" + missing}
	}
	return answer, nil
}

func (c Config) zoneScope(zone, missing string, rows []object) object {
	if zone == missing {
		return object{"warning": object{"code": "UNREACHABLE", "message": "The zone cannot be reached."}}
	}
	var instances []object
	for _, row := range rows {
		if row["zone"] == c.resourceLink("zones", zone) {
			instances = append(instances, row)
		}
	}
	if instances == nil {
		return object{"warning": object{"code": "NO_RESULTS_ON_PAGE",
			"message": "There are no results for scope 'zones/" + zone + "' on this page."}}
	}
	return object{"instances": instances}
}

// oldestZone returns the zone of the oldest instance that is there, else the first.
func (c *Cloud) oldestZone(now time.Time) string {
	for _, m := range c.machines {
		if m.existsAt(now) && !m.foreign {
			return m.zone
		}
	}
	return c.config.Zones[0]
}
