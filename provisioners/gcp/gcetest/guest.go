package gcetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

func (c *Cloud) setMetadata(r *http.Request, now time.Time) (any, error) {
	m, err := c.findInstance(r, now)
	if err != nil {
		return nil, err
	}
	body, err := decodeBody(r)
	if err != nil {
		return nil, err
	}
	if faultOf(r).Effect == Race {
		m.changes++
	}
	if body["fingerprint"] != m.metadataFingerprint() {
		return nil, newRefusal(http.StatusPreconditionFailed, "conditionNotMet",
			"Supplied fingerprint does not match current metadata fingerprint.")
	}
	items, _ := body["items"].([]any)
	if err := checkItems(items); err != nil {
		return nil, err
	}
	m.metadata = items
	m.changes++
	return c.config.renderOperation(c.recordOperation(&operation{kind: "setMetadata", machine: m, begun: now,
		ended: now}), now), nil
}

// guestAttributes answers what the guest wrote. Nothing there is a 404.
func (c *Cloud) guestAttributes(r *http.Request, now time.Time) (any, error) {
	m, err := c.findInstance(r, now)
	if err != nil {
		return nil, err
	}
	if m.metadataValue("enable-guest-attributes") != "TRUE" {
		return nil, newRefusal(http.StatusForbidden, "forbidden", "Guest attributes endpoint access is disabled.")
	}
	prefix := r.URL.Query().Get("queryPath")
	items := []object{}
	for path, value := range c.writtenAttributes(m, now) {
		if namespace, key, _ := strings.Cut(path, "/"); strings.HasPrefix(path, prefix) {
			items = append(items, object{"namespace": namespace, "key": key, "value": value})
		}
	}
	if len(items) == 0 {
		return nil, newRefusal(http.StatusNotFound, "notFound",
			"The resource '%s' of type 'Guest Attribute' was not found.", prefix)
	}
	return object{"kind": "compute#guestAttributes", "queryPath": prefix, "queryValue": object{"items": items}}, nil
}

// writtenAttributes is what the adapter's start-up script writes in a real guest, and what
// a test wrote instead.
func (c *Cloud) writtenAttributes(m *machine, now time.Time) map[string]string {
	all := map[string]string{}
	if hasReached(m.reported, now) && !m.foreign && m.metadataValue("startup-script") != "" {
		all["forewarm/gpus"] = m.guestReport()
	}
	if hasReached(m.preempted, now) && hasReached(m.running, m.preempted) {
		all["forewarm/notice"] = fmt.Sprint(m.preempted.Unix())
	}
	for path, value := range m.attributes {
		all[path] = value
	}
	return all
}

func (m *machine) guestReport() string {
	gpus := []object{}
	for i := range m.typed.GPUs {
		gpus = append(gpus, object{
			"index": i, "uuid": fmt.Sprintf("GPU-%08x-%04d-4000-8000-%012x", m.id>>32, i, m.id&0xffffffff),
			"name": m.typed.GPU, "memory_mib": m.typed.MemoryMiB, "ecc_uncorrected": 0,
		})
	}
	text, err := json.Marshal(gpus)
	if err != nil {
		return err.Error() // cannot be: numbers and strings
	}
	return string(text)
}

// changeMachine runs a change of the instance that stands, if one does.
func (c *Cloud) changeMachine(zone, name string, do func(m *machine, now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.runGuests(now)
	if m := c.findMachine(zone, name, now); m != nil {
		do(m, now)
	}
}

// Preempt takes the instance back as Google takes spot machines back: it is
// STOPPING for the notice, then stopped, and deleted if it was made so.
func (c *Cloud) Preempt(zone, name string) {
	c.changeMachine(zone, name, func(m *machine, now time.Time) {
		if !m.stopping.IsZero() {
			return
		}
		m.preempted, m.stopping, m.stopped = now, now, now.Add(c.config.Notice)
		if m.onPreempt == "DELETE" {
			m.gone = m.stopped
		}
		if m.insert != nil && !hasReached(m.insert.ended, now) {
			m.insert.ended = now
		}
		c.recordOperation(&operation{kind: "compute.instances.preempted", machine: m, begun: now, ended: m.stopped})
	})
}

// SetGuestAttribute writes what a guest writes, by namespace/key.
func (c *Cloud) SetGuestAttribute(zone, name, path, value string) {
	c.changeMachine(zone, name, func(m *machine, _ time.Time) { m.attributes[path] = value })
}

// SetBusy says whether something computes in the guest.
func (c *Cloud) SetBusy(zone, name string, busy bool) {
	c.changeMachine(zone, name, func(m *machine, _ time.Time) { m.busy = busy })
}

// SetMaintenance announces maintenance of the instance's host, in the fields of
// the API's UpcomingMaintenance.
func (c *Cloud) SetMaintenance(zone, name string, upcoming map[string]any) {
	c.changeMachine(zone, name, func(m *machine, _ time.Time) { m.maintained = upcoming })
}

// SetLabel changes a label from outside.
func (c *Cloud) SetLabel(zone, name, key, value string) {
	c.changeMachine(zone, name, func(m *machine, _ time.Time) {
		labels, _ := m.body["labels"].(object)
		labels = maps.Clone(labels) // an answer that is being written shows the old ones
		labels[key] = value
		m.body["labels"] = labels
	})
}
