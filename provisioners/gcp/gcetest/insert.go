package gcetest

import (
	"net/http"
	"path"
	"regexp"
	"time"

	"github.com/google/uuid"
)

var (
	namePattern  = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelKey     = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	labelPattern = regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
)

func (c *Cloud) insertInstance(r *http.Request, now time.Time) (any, error) {
	requestID := r.URL.Query().Get("requestId")
	if requestID != "" {
		if id, err := uuid.Parse(requestID); err != nil || id == uuid.Nil {
			return nil, invalidField("requestId", requestID)
		}
		if op := c.repeatedInsert(requestID, now); op != nil {
			return c.config.renderOperation(op, now), nil
		}
	}
	body, err := decodeBody(r)
	if err != nil {
		return nil, err
	}
	m, err := c.config.parseInsert(r.PathValue("zone"), body)
	if err != nil {
		return nil, err
	}
	if c.findMachine(m.zone, m.name, now) != nil {
		return nil, newRefusal(http.StatusConflict, "alreadyExists",
			"The resource 'projects/%s/zones/%s/instances/%s' already exists", c.config.Project, m.zone, m.name)
	}
	return c.config.renderOperation(c.makeMachine(m, requestID, faultOf(r), now), now), nil
}

// repeatedInsert returns the operation of an insert with the same requestId.
func (c *Cloud) repeatedInsert(requestID string, now time.Time) *operation {
	for _, op := range c.operations {
		if op.requestID == requestID && op.kind == "insert" && now.Sub(op.begun) < c.config.RequestMemory {
			return op
		}
	}
	return nil
}

func (c *Cloud) makeMachine(m *machine, requestID string, fault Fault, now time.Time) *operation {
	m.id, m.born = c.nextID(), now
	m.staging, m.running = now.Add(c.config.Staging), now.Add(c.config.Running)
	m.reported = m.running.Add(c.config.Guest)
	op := &operation{kind: "insert", machine: m, requestID: requestID, begun: now, ended: m.running}
	m.insert = op
	left, bounded := c.stock[m.kind]
	switch {
	case fault.Effect == Fail:
		op.failWith(fault.Reason, "injected failure", fault.QuotaMetric)
	case bounded && left <= 0:
		op.failWith("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
			"The zone '"+m.zone+"' does not have enough resources available to fulfill the request.", "")
	case bounded:
		c.stock[m.kind] = left - 1
	}
	if op.stillborn {
		op.ended = now.Add(c.config.FailAfter)
		m.gone = op.ended
	}
	c.machines = append(c.machines, m)
	return c.recordOperation(op)
}

func (op *operation) failWith(code, message, quota string) {
	op.code, op.message, op.quota, op.stillborn = code, message, quota, true
}

func invalidField(field string, value any) error {
	return newRefusal(http.StatusBadRequest, "invalid", "Invalid value for field '%s': '%v'.", field, value)
}

// parseInsert checks the body of an insert as the service does and returns the machine
// that it describes.
func (c Config) parseInsert(zone string, body object) (*machine, error) {
	name, _ := body["name"].(string)
	if !namePattern.MatchString(name) {
		return nil, invalidField("resource.name", name)
	}
	link, _ := body["machineType"].(string)
	kind := path.Base(link)
	typed, known := c.Types[kind]
	if !known || path.Base(path.Dir(path.Dir(link))) != zone {
		return nil, newRefusal(http.StatusNotFound, "notFound", "The resource '%s' was not found", link)
	}
	for _, list := range []string{"disks", "networkInterfaces"} {
		if rows, _ := body[list].([]any); len(rows) == 0 {
			return nil, newRefusal(http.StatusBadRequest, "required", "Required field 'resource.%s' not specified",
				list)
		}
	}
	labels, _ := body["labels"].(object)
	for key, value := range labels {
		text, _ := value.(string)
		if !labelKey.MatchString(key) || !labelPattern.MatchString(text) {
			return nil, invalidField("resource.labels", key+": "+text)
		}
	}
	m := &machine{zone: zone, name: name, kind: kind, typed: typed, body: body, attributes: map[string]string{}}
	metadata, _ := body["metadata"].(object)
	m.metadata, _ = metadata["items"].([]any)
	if err := checkItems(m.metadata); err != nil {
		return nil, err
	}
	return m, m.parseScheduling()
}

// parseScheduling reads the scheduling and refuses what the service refuses for
// machines with GPUs and for spot ones.
func (m *machine) parseScheduling() error {
	scheduling, _ := m.body["scheduling"].(object)
	model, _ := scheduling["provisioningModel"].(string)
	m.spot = model == "SPOT"
	m.onPreempt, _ = scheduling["instanceTerminationAction"].(string)
	restart, set := scheduling["automaticRestart"].(bool)
	switch {
	case m.typed.GPUs > 0 && scheduling["onHostMaintenance"] != "TERMINATE":
		return invalidField("resource.scheduling.onHostMaintenance", scheduling["onHostMaintenance"])
	case m.spot && (!set || restart):
		return invalidField("resource.scheduling.automaticRestart", restart)
	case m.onPreempt != "" && model != "SPOT" && model != "RESERVATION_BOUND":
		return invalidField("resource.scheduling.instanceTerminationAction", m.onPreempt)
	}
	return nil
}

const maxValue = 256 << 10

func checkItems(items []any) error {
	seen := map[string]bool{}
	for _, item := range items {
		pair, _ := item.(object)
		key, _ := pair["key"].(string)
		value, _ := pair["value"].(string)
		if key == "" || seen[key] || len(value) > maxValue {
			return invalidField("resource.metadata.items", key)
		}
		seen[key] = true
	}
	return nil
}

// AddForeign makes an instance that some other user of the project asked for,
// and returns whether it still stands.
func (c *Cloud) AddForeign(zone, name, machineType string) (stands func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	m := &machine{
		zone: zone, name: name, kind: machineType, typed: c.config.Types[machineType], foreign: true,
		body: object{"name": name, "labels": object{"team": "research"}}, attributes: map[string]string{},
	}
	c.makeMachine(m, "", Fault{}, now.Add(-time.Hour))
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := c.clock.Now()
		return c.findMachine(zone, name, now) == m && m.statusAt(now) == "RUNNING"
	}
}
