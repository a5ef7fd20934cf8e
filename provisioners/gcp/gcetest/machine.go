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

func hasReached(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// neverMade reports whether the insert of the machine failed.
func (m *machine) neverMade() bool { return m.insert != nil && m.insert.stillborn }

// existsAt reports whether the instance could be got at the time.
func (m *machine) existsAt(now time.Time) bool {
	return hasReached(m.born, now) && !hasReached(m.gone, now)
}

// statusAt is the instance's as it was at the time.
func (m *machine) statusAt(now time.Time) string {
	switch {
	case hasReached(m.stopped, now):
		return "TERMINATED"
	case hasReached(m.stopping, now):
		return "STOPPING"
	case hasReached(m.running, now) && !m.neverMade():
		return "RUNNING"
	case hasReached(m.staging, now) && !m.neverMade():
		return "STAGING"
	default:
		return "PROVISIONING"
	}
}

func (m *machine) metadataFingerprint() string {
	return fmt.Sprintf("%08x=", crc32.ChecksumIEEE(fmt.Appendf(nil, "%d %d", m.id, m.changes)))
}

// metadataValue returns a metadata value.
func (m *machine) metadataValue(key string) string {
	for _, item := range m.metadata {
		if pair, ok := item.(object); ok && pair["key"] == key {
			value, _ := pair["value"].(string)
			return value
		}
	}
	return ""
}

// runGuests lets the guests do what time made due: one that nobody renewed, and
// on which nothing computes, powers its machine off.
func (c *Cloud) runGuests(now time.Time) {
	for _, m := range c.machines {
		seconds, err := strconv.ParseInt(m.metadataValue("forewarm-expires-at"), 10, 64)
		if err != nil || m.busy || m.foreign || !m.stopping.IsZero() || !hasReached(m.reported, now) ||
			!m.existsAt(now) {
			continue
		}
		expired := time.Unix(seconds, 0)
		if expired.Before(m.reported) {
			expired = m.reported
		}
		if !hasReached(expired, now) {
			continue
		}
		m.stopping, m.stopped = expired, expired.Add(c.config.PowerOff)
		c.recordOperation(&operation{kind: "compute.instances.guestTerminate", machine: m, begun: m.stopping,
			ended: m.stopped})
	}
	c.dropOldOperations(now)
}

const timeFormat = "2006-01-02T15:04:05.000-07:00"

// pacific is where the service's timestamps come from.
var pacific = time.FixedZone("", -7*60*60)

func formatTime(t time.Time) string { return t.In(pacific).Format(timeFormat) }

// renderMachine is the instance as the API shows it.
func (c Config) renderMachine(m *machine, now time.Time) object {
	shown := maps.Clone(m.body)
	shown["kind"], shown["id"] = "compute#instance", strconv.FormatUint(m.id, 10)
	shown["creationTimestamp"], shown["status"] = formatTime(m.born), m.statusAt(now)
	shown["zone"] = c.resourceLink("zones", m.zone)
	shown["selfLink"] = c.instanceLink(m)
	shown["metadata"] = object{"kind": "compute#metadata", "fingerprint": m.metadataFingerprint(), "items": m.metadata}
	shown["networkInterfaces"] = c.networkInterfaces(m)
	if hasReached(m.running, now) {
		shown["lastStartTimestamp"] = formatTime(m.running)
	}
	if hasReached(m.stopped, now) {
		shown["lastStopTimestamp"] = formatTime(m.stopped)
	}
	if m.maintained != nil {
		shown["resourceStatus"] = object{"upcomingMaintenance": m.maintained}
	}
	return shown
}

func (c Config) networkInterfaces(m *machine) []object {
	address := fmt.Sprintf("10.128.%d.%d", m.id>>8&0xff, m.id&0xff)
	return []object{{"name": "nic0", "networkIP": address}}
}

func (c Config) resourceLink(parts ...string) string {
	link := "https://www.googleapis.com/compute/v1/projects/" + c.Project
	for _, part := range parts {
		link += "/" + part
	}
	return link
}

func (c Config) instanceLink(m *machine) string {
	return c.resourceLink("zones", m.zone, "instances", m.name)
}
