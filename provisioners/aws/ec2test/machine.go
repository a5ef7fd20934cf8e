package ec2test

import (
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/money"
)

// GPU is one device of a machine as its driver would report it.
type GPU struct {
	UUID      string  `json:"uuid"`
	Index     int     `json:"index"`
	Name      string  `json:"name"`
	MemoryMiB int     `json:"memory_mib"`
	ECC       *uint64 `json:"ecc"`
}

// machine is one instance. Its state is computed from its instants.
type machine struct {
	id, token, zone, subnet, image, key string
	kind                                Type
	market                              string // on-demand, spot or capacity-block
	reservation                         string
	price                               money.MicroUSD
	userData                            string
	ephemeral                           []string // its disks that end with it
	tags                                []tag
	gpus                                []GPU
	busy                                bool
	idle                                time.Time // since when it is not busy any more

	born    time.Time // to the second, as EC2 tells it
	stop    time.Time // when its end began; zero while it stands
	reason  [2]string // code and message of that
	told    string    // EC2's text about its last transition
	reclaim time.Time // when its end was announced
	spot    string    // the code of its spot request
}

// tag is one setting of a tag; the last of a key counts.
type tag struct {
	key, value string
	at         time.Time
}

// The names of the states.
const (
	pending, running, ending, terminated = "pending", "running", "shutting-down", "terminated"
)

var stateCodes = map[string]int{pending: 0, running: 16, ending: 32, terminated: 48}

func (m *machine) stateAt(c Config, at time.Time) string {
	switch {
	case m.endedAt(at) && !at.Before(m.stop.Add(c.Ending)):
		return terminated
	case m.endedAt(at):
		return ending
	case at.Before(m.born.Add(c.Pending)):
		return pending
	}
	return running
}

// endedAt reports whether the machine's end had begun.
func (m *machine) endedAt(at time.Time) bool { return !m.stop.IsZero() && !at.Before(m.stop) }

// isShown reports whether a machine can be described at all.
func (m *machine) isShown(c Config, at time.Time) bool {
	return !at.Before(m.born) && (m.stop.IsZero() || at.Before(m.stop.Add(c.Ending).Add(c.Shown)))
}

func (m *machine) endAt(at time.Time, code, message, told string) {
	m.stop, m.reason, m.told = at.Truncate(time.Second), [2]string{code, message}, told
	if m.stop.Before(m.born) {
		m.stop = m.born
	}
}

func (m *machine) tagValue(key string) (string, bool) {
	for i := len(m.tags) - 1; i >= 0; i-- {
		if m.tags[i].key == key {
			return m.tags[i].value, true
		}
	}
	return "", false
}

// userText is the user data as the machine reads it.
func (m *machine) userText() string {
	data, err := base64.StdEncoding.DecodeString(m.userData)
	if err != nil {
		return ""
	}
	return string(data)
}

const gmt = "2006-01-02 15:04:05 GMT"

// advanceMachines brings every machine up to now: announced reclaims, blocks that end,
// and machines that end themselves.
func (r *Region) advanceMachines() time.Time {
	now := r.clock.Now()
	for _, m := range r.machines {
		if !m.stop.IsZero() {
			continue
		}
		if !m.reclaim.IsZero() && !now.Before(m.reclaim.Add(2*time.Minute)) {
			at := m.reclaim.Add(2 * time.Minute)
			m.endAt(at, "Server.SpotInstanceTermination", "Spot instance termination",
				"Service initiated ("+at.Format(gmt)+")")
		}
		if block, found := r.config.findReservation(m.reservation); found && block.Block &&
			!now.Before(block.endsAt()) {
			at := block.endsAt()
			m.endAt(at, "Server.CapacityBlockExpired", "Capacity Block ended", "Service initiated ("+at.Format(gmt)+")")
		}
		if at, due := m.powersOff(r.config, now); due && (m.stop.IsZero() || at.Before(m.stop)) {
			// EC2 is not known to tell the time of such an end, so it does not here.
			m.endAt(at, "Client.InstanceInitiatedShutdown", "Instance initiated shutdown", "")
		}
	}
	return now
}

var unclaimed = regexp.MustCompile(`FOREWARM_UNCLAIMED_S=(\d+)`)

// powersOff plays the script of the user data: it returns the first of its looks
// at which the machine's time was over. The tags do not change unseen in
// between, because every call settles first.
func (m *machine) powersOff(c Config, now time.Time) (time.Time, bool) {
	up := m.born.Add(c.Pending)
	text := m.userText()
	if m.busy || now.Before(up) || !strings.Contains(text, "forewarm:expires-at") {
		return time.Time{}, false
	}
	var over time.Time
	value, tagged := m.tagValue("forewarm:expires-at")
	if tagged {
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return time.Time{}, false // never
		}
		over = at
	} else if match := unclaimed.FindStringSubmatch(text); match != nil {
		seconds, _ := strconv.Atoi(match[1])
		over = up.Add(time.Duration(seconds) * time.Second)
	} else {
		return time.Time{}, false
	}
	looks := max(0, over.Sub(up)+c.Tick-1) / c.Tick
	at := up.Add(looks * c.Tick)
	causes := []time.Time{m.idle} // an end does not lie before what caused it
	if tagged {
		causes = append(causes, m.tags[len(m.tags)-1].at)
	}
	for _, cause := range causes {
		if at.Before(cause) {
			at = cause
		}
	}
	return at, !now.Before(at)
}
