package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxObject is the largest object, in bytes, that ReadKubernetes reads.
const MaxObject = 16 << 20

// errLargeObject says that one object of a list is over MaxObject.
var errLargeObject = errors.New("an object of the list is over 16 MiB")

// ReadKubernetes reads what "kubectl get pods -o json" prints, and jobs likewise,
// and calls each for every object that asks for GPUs, in the order of the list.
// The tenant is the namespace. A Job whose Pods stand in the same list is
// skipped, since they say the same in more detail. It holds one record per
// object.
//
// A Pod starts when its node has taken it, which is when it has its GPUs. A Job
// does not say when that was: its own start is when it was allowed to make Pods.
func ReadKubernetes(r io.Reader, o Options, each func(Record) error) (Report, error) {
	plain, err := newLines(r)
	if err != nil {
		return Report{}, fmt.Errorf("reading history: %w", err)
	}
	l := &kubeList{options: o, in: &allowance{r: plain.r}, owners: map[string]bool{}}
	l.in.renew()
	l.decoder = json.NewDecoder(l.in)
	if err := l.readList(); err != nil {
		return l.report, fmt.Errorf("reading history: %w", err)
	}
	return l.report, l.handOver(each)
}

// allowance fails a reader that is read for more than one object at a time.
type allowance struct {
	r    io.Reader
	left int
}

func (a *allowance) renew() { a.left = MaxObject }

func (a *allowance) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, errLargeObject
	}
	n, err := a.r.Read(p[:min(len(p), a.left)])
	a.left -= n
	return n, err
}

// kubeList is a list under reading.
type kubeList struct {
	options Options
	in      *allowance
	decoder *json.Decoder
	found   []kubeRecord
	owners  map[string]bool // the Jobs whose Pods were seen
	report  Report
}

// kubeRecord is a record with the UID of the Job that it is, if it is one.
type kubeRecord struct {
	Record
	job string
}

// readList goes through the keys of the one object that the file is: a list with
// items, or a single Pod or Job.
func (l *kubeList) readList() error {
	if t, err := l.decoder.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("must be the JSON object of kubectl get -o json"), err)
	}
	single := map[string]json.RawMessage{}
	for l.decoder.More() {
		key, err := l.decoder.Token()
		if err != nil {
			return err
		}
		if key == "items" {
			if err := l.readItems(); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := l.decoder.Decode(&value); err != nil {
			return err
		}
		single[fmt.Sprint(key)] = value
	}
	if _, ok := single["spec"]; !ok {
		return nil
	}
	whole, err := json.Marshal(single)
	if err != nil {
		return err
	}
	l.takeObject(whole)
	return nil
}

func (l *kubeList) readItems() error {
	if t, err := l.decoder.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(errors.New("items must be an array"), err)
	}
	for l.decoder.More() {
		l.in.renew()
		var object json.RawMessage
		if err := l.decoder.Decode(&object); err != nil {
			return fmt.Errorf("after object %d: %w", l.report.Rows, err)
		}
		l.takeObject(object)
	}
	l.in.renew()
	_, err := l.decoder.Token()
	return err
}

// takeObject makes the record of one object.
func (l *kubeList) takeObject(text json.RawMessage) {
	var object kubeObject
	if err := json.Unmarshal(text, &object); err != nil {
		l.countObject(false, &RowError{Rule: "must be a Pod or a Job as Kubernetes writes it"})
		return
	}
	r, kept, err := object.toRecord(l.options)
	l.countObject(kept, err)
	if kept && err == nil {
		l.found = append(l.found, kubeRecord{Record: r, job: object.jobUID()})
		if object.Kind == "Pod" {
			l.owners[object.Metadata.owningJob()] = true
		}
	}
}

// countObject counts an object; a broken one is named by its place in the list.
func (l *kubeList) countObject(kept bool, err error) {
	var row *RowError
	if errors.As(err, &row) {
		named := *row
		named.Field = strings.TrimSpace(fmt.Sprintf("items[%d] %s", l.report.Rows, row.Field))
		err = &named
	}
	l.report.Count(0, kept, err)
}

// handOver hands over what was found, without the Jobs whose Pods are there too.
func (l *kubeList) handOver(each func(Record) error) error {
	for _, f := range l.found {
		if f.job != "" && l.owners[f.job] {
			l.report.Kept--
			l.report.Skipped++
			continue
		}
		if err := each(f.Record); err != nil {
			return err
		}
	}
	return nil
}
