package gcetest

import (
	"fmt"
	"hash/crc32"
	"maps"
	"strconv"
	"time"
)

// machine is one instance, as instants. A zero instant is never.
type machine struct {
	id         uint64
	zone, name string
	kind       string // machine type
	typed      Type
	spot       bool
	onPreempt  string // DELETE or STOP
	body       object // as it was asked for; what the service adds is overlaid
	metadata   []any
	changes    int // of the metadata
	attributes map[string]string
	foreign    bool // its guest is none of ours: it reports nothing
	busy       bool // something computes on it
	maintained object
	insert     *operation

	born, staging, running, reported time.Time
	preempted, stopping              time.Time
	stopped, gone                    time.Time
}

func reached(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// never reports whether the insert of the machine failed.
func (m *machine) never() bool { return m.insert != nil && m.insert.stillborn }

// there reports whether the instance could be got at the time.
func (m *machine) there(now time.Time) bool { return reached(m.born, now) && !reached(m.gone, now) }

// status is the instance's as it was at the time.
func (m *machine) status(now time.Time) string {
	switch {
	case reached(m.stopped, now):
		return "TERMINATED"
	case reached(m.stopping, now):
		return "STOPPING"
	case reached(m.running, now) && !m.never():
		return "RUNNING"
	case reached(m.staging, now) && !m.never():
		return "STAGING"
	default:
		return "PROVISIONING"
	}
}

func (m *machine) fingerprint() string {
	return fmt.Sprintf("%08x=", crc32.ChecksumIEEE(fmt.Appendf(nil, "%d %d", m.id, m.changes)))
}

// item returns a metadata value.
func (m *machine) item(key string) string {
	for _, item := range m.metadata {
		if pair, ok := item.(object); ok && pair["key"] == key {
			value, _ := pair["value"].(string)
			return value
		}
	}
	return ""
}

// settle lets the guests do what time made due: one that nobody renewed, and
// on which nothing computes, powers its machine off.
func (c *Cloud) settle(now time.Time) {
	for _, m := range c.machines {
		seconds, err := strconv.ParseInt(m.item("forewarm-expires-at"), 10, 64)
		if err != nil || m.busy || m.foreign || !m.stopping.IsZero() || !reached(m.reported, now) || !m.there(now) {
			continue
		}
		expired := time.Unix(seconds, 0)
		if expired.Before(m.reported) {
			expired = m.reported
		}
		if !reached(expired, now) {
			continue
		}
		m.stopping, m.stopped = expired, expired.Add(c.config.PowerOff)
		c.record(&operation{kind: "compute.instances.guestTerminate", machine: m, begun: m.stopping, ended: m.stopped})
	}
	c.forget(now)
}

const timeFormat = "2006-01-02T15:04:05.000-07:00"

// pacific is where the service's timestamps come from.
var pacific = time.FixedZone("", -7*60*60)

func stamp(t time.Time) string { return t.In(pacific).Format(timeFormat) }

// render is the instance as the API shows it.
func (c *Cloud) render(m *machine, now time.Time) object {
	shown := maps.Clone(m.body)
	shown["kind"], shown["id"] = "compute#instance", strconv.FormatUint(m.id, 10)
	shown["creationTimestamp"], shown["status"] = stamp(m.born), m.status(now)
	shown["zone"] = c.link("zones", m.zone)
	shown["selfLink"] = c.instanceLink(m)
	shown["metadata"] = object{"kind": "compute#metadata", "fingerprint": m.fingerprint(), "items": m.metadata}
	shown["networkInterfaces"] = c.interfaces(m)
	if reached(m.running, now) {
		shown["lastStartTimestamp"] = stamp(m.running)
	}
	if reached(m.stopped, now) {
		shown["lastStopTimestamp"] = stamp(m.stopped)
	}
	if m.maintained != nil {
		shown["resourceStatus"] = object{"upcomingMaintenance": m.maintained}
	}
	return shown
}

func (c *Cloud) interfaces(m *machine) []object {
	address := fmt.Sprintf("10.128.%d.%d", m.id>>8&0xff, m.id&0xff)
	return []object{{"name": "nic0", "networkIP": address}}
}

func (c *Cloud) link(parts ...string) string {
	link := "https://www.googleapis.com/compute/v1/projects/" + c.config.Project
	for _, part := range parts {
		link += "/" + part
	}
	return link
}

func (c *Cloud) instanceLink(m *machine) string {
	return c.link("zones", m.zone, "instances", m.name)
}
