package history

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// kubeObject is what is read of a Pod or a Job.
type kubeObject struct {
	Kind     string   `json:"kind"`
	Metadata kubeMeta `json:"metadata"`
	Spec     struct {
		kubePodSpec
		Parallelism *int `json:"parallelism"`
		Template    struct {
			Spec kubePodSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Phase          string          `json:"phase"`
		StartTime      string          `json:"startTime"`
		CompletionTime string          `json:"completionTime"`
		Containers     []kubeContainer `json:"containerStatuses"`
		Conditions     []struct {
			Type, Status       string
			LastTransitionTime string
		} `json:"conditions"`
	} `json:"status"`
}

type kubeMeta struct {
	Name              string `json:"name"`
	Namespace         string `json:"namespace"`
	UID               string `json:"uid"`
	CreationTimestamp string `json:"creationTimestamp"`
	OwnerReferences   []struct{ Kind, UID string }
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
}

// generated is what a controller adds to the names of what it makes: a template's hash, a time, a place, letters and
// digits at random.
var generated = regexp.MustCompile(`(?:-[0-9]+|-[bcdfghjklmnpqrstvwxz2456789]{5,10})+$`)

// stemOf is a name without that.
func stemOf(name string) string { return generated.ReplaceAllString(name, "") }

// isOurs reports whether the object is a placeholder of Forewarm.
func (m kubeMeta) isOurs() bool {
	return m.Labels[ownLabel] != "" || m.Annotations[ownToken] != "" || isOwn(m.Name)
}

// owningJob is the UID of the Job that made a Pod, or empty.
func (m kubeMeta) owningJob() string {
	for _, o := range m.OwnerReferences {
		if o.Kind == "Job" {
			return o.UID
		}
	}
	return ""
}

type kubePodSpec struct {
	Containers     []kubeResources `json:"containers"`
	InitContainers []kubeResources `json:"initContainers"`
}

type kubeResources struct {
	Resources struct {
		Limits, Requests map[string]scalar
	} `json:"resources"`
}

type kubeContainer struct {
	State struct {
		Terminated *struct {
			FinishedAt string `json:"finishedAt"`
		} `json:"terminated"`
	} `json:"state"`
}

func (k kubeObject) jobUID() string {
	if k.Kind == "Job" {
		return k.Metadata.UID
	}
	return ""
}

// toRecord makes the record of a Pod or a Job that asks for GPUs.
func (k kubeObject) toRecord(o Options) (Record, bool, error) {
	if k.Kind != "Pod" && k.Kind != "Job" || k.Metadata.isOurs() {
		return Record{}, false, nil
	}
	gpus, err := k.countGPUs()
	if err != nil || gpus == 0 {
		return Record{}, false, err
	}
	name := k.Metadata.UID
	if name == "" {
		name = k.Metadata.Namespace + "/" + k.Metadata.Name
	}
	if name == "/" || len(name) > MaxName {
		return Record{}, false, &RowError{Field: "metadata.uid",
			Rule: "must be 1 to 256 bytes, or the name must be known"}
	}
	r := Record{ID: Pseudonym(o.Salt, name), Tenant: k.Metadata.Namespace, GPUs: gpus,
		Class: o.hashOf(k.Metadata.Namespace, stemOf(k.Metadata.Name)), Array: o.hashOf(k.Metadata.owningJob())}
	if err := k.readTimes(&r); err != nil {
		return Record{}, false, err
	}
	err = r.Validate()
	return r, err == nil, err
}

// countGPUs counts the GPUs of a Pod, or of all Pods that a Job runs at once.
func (k kubeObject) countGPUs() (int, error) {
	if k.Kind == "Pod" {
		return k.Spec.countGPUs()
	}
	each, err := k.Spec.Template.Spec.countGPUs()
	if k.Spec.Parallelism == nil {
		return each, err
	}
	return each * min(max(*k.Spec.Parallelism, 1), MaxGPUs), err
}

// countGPUs is what the containers ask for together, or the largest init container if
// that is more: they run before the others.
func (s kubePodSpec) countGPUs() (int, error) {
	sum, largest := 0, 0
	for _, c := range s.Containers {
		n, err := c.countGPUs()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	for _, c := range s.InitContainers {
		n, err := c.countGPUs()
		if err != nil {
			return 0, err
		}
		largest = max(largest, n)
	}
	return max(sum, largest), nil
}

// countGPUs adds up the resources called …/gpu, such as nvidia.com/gpu. For those, a
// limit is a request.
func (c kubeResources) countGPUs() (int, error) {
	sum := 0
	for _, name := range c.resourceNames() {
		value := c.Resources.Limits[name]
		if value == "" {
			value = c.Resources.Requests[name]
		}
		if value == "0" {
			continue
		}
		n, err := wholeGPUs("resources", string(value))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func (c kubeResources) resourceNames() []string {
	var names []string
	for _, m := range []map[string]scalar{c.Resources.Limits, c.Resources.Requests} {
		for name := range m {
			if strings.HasSuffix(name, "/gpu") && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// readTimes reads when the object was made, had its GPUs and gave them back.
func (k kubeObject) readTimes(r *Record) error {
	var err error
	if r.Submitted, err = kubeTime("metadata.creationTimestamp", k.Metadata.CreationTimestamp); err != nil {
		return err
	}
	started, err := kubeTime("status.startTime", k.Status.StartTime)
	if err != nil {
		return err
	}
	if k.Kind == "Job" {
		return k.jobTimes(r, started)
	}
	r.State, r.Started = ParseState(k.Status.Phase), started
	if r.State == Pending && !started.IsZero() { // it has its GPUs while it fetches its image
		r.State = Running
	}
	if r.State == Running || r.State == Pending {
		return nil
	}
	for _, c := range k.Status.Containers {
		if c.State.Terminated == nil {
			continue
		}
		at, err := kubeTime("status.containerStatuses", c.State.Terminated.FinishedAt)
		if err != nil {
			return err
		}
		if at.After(r.Ended) {
			r.Ended = at
		}
	}
	r.Duration = durationBetween(started, r.Ended)
	return nil
}

// jobTimes reads how a Job stands and how long its Pods may have run.
func (k kubeObject) jobTimes(r *Record, started time.Time) error {
	ended, field := k.Status.CompletionTime, "status.completionTime"
	if r.State = Pending; !started.IsZero() {
		r.State = Running
	}
	for _, c := range k.Status.Conditions {
		if c.Status != "True" || c.Type != "Complete" && c.Type != "Failed" {
			continue
		}
		r.State = Completed
		if c.Type == "Failed" {
			r.State, ended, field = Failed, c.LastTransitionTime, "status.conditions"
		}
	}
	at, err := kubeTime(field, ended)
	r.Ended, r.Duration = at, durationBetween(started, at)
	return err
}

// durationBetween is the time from start to end, or 0 when either is not known. It is
// negative when they stand in the wrong order, which no record may be.
func durationBetween(start, end time.Time) time.Duration {
	if start.IsZero() || end.IsZero() {
		return 0
	}
	return end.Sub(start)
}

func kubeTime(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !isPlausible(t) {
		return time.Time{}, &RowError{Field: field, Rule: "must be a time like 2026-01-31T13:05:00Z"}
	}
	return t.UTC().Truncate(time.Microsecond), nil
}
