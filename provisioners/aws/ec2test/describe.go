package ec2test

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type reservationRow struct {
	ID        string        `xml:"reservationId"`
	Instances []instanceRow `xml:"instancesSet>item"`
}

type describeAnswer struct {
	XMLName      xml.Name         `xml:"DescribeInstancesResponse"`
	Reservations []reservationRow `xml:"reservationSet>item"`
	Next         string           `xml:"nextToken,omitempty"`
}

// describeInstances shows the world as it was Config.Lag ago.
func (r *Region) describeInstances(c call) (any, error) {
	then := c.now.Add(-r.config.Lag)
	ids := listValues(c.form, "InstanceId")
	if len(ids) > 0 && c.form.Has("MaxResults") {
		return nil, newRefusal("InvalidParameterCombination",
			"The parameter instancesSet cannot be used with the parameter maxResults")
	}
	var found []*machine
	var err error
	if len(ids) > 0 {
		found, err = r.findMachines(ids, then)
	} else {
		found, err = r.filterMachines(c.form, then)
	}
	if err != nil {
		return nil, err
	}
	page, next, err := r.cutPage(c.form, found)
	if err != nil {
		return nil, err
	}
	answer := describeAnswer{Next: next}
	for _, m := range page {
		answer.Reservations = append(answer.Reservations,
			reservationRow{ID: "r-" + m.id[2:], Instances: []instanceRow{m.rowAt(r.config, then)}})
	}
	return c.fault.spoilAnswer(answer), nil
}

func (f Fault) spoilAnswer(answer describeAnswer) describeAnswer {
	last := len(answer.Reservations) - 1
	switch {
	case f.Effect == Garble && last >= 0:
		answer.Reservations[last].Instances[0].ID = ""
	case f.Effect == Loop:
		answer.Next = "again"
	case f.Effect == Empty:
		answer.Reservations = nil
	}
	return answer
}

var idPattern = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

// findMachines returns the machines with the ids, all or an error.
func (r *Region) findMachines(ids []string, at time.Time) ([]*machine, error) {
	var all []*machine
	for _, id := range ids {
		if !idPattern.MatchString(id) {
			return nil, newRefusal("InvalidInstanceID.Malformed", "Invalid id: %q", id)
		}
		m := r.byID[id]
		if m == nil || !m.isShown(r.config, at) {
			return nil, newRefusal("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		all = append(all, m)
	}
	return all, nil
}

// filterField reads what a filter of DescribeInstances looks at.
func (m *machine) filterField(name string, c Config, at time.Time) (values []string, known bool) {
	rows := m.tagRows(at)
	if key, ok := strings.CutPrefix(name, "tag:"); ok {
		for _, row := range rows {
			if row.Key == key {
				return []string{row.Value}, true
			}
		}
		return nil, true
	}
	switch name {
	case "client-token":
		return []string{m.token}, true
	case "instance-id":
		return []string{m.id}, true
	case "instance-state-name":
		return []string{m.stateAt(c, at)}, true
	case "tag-key":
		for _, row := range rows {
			values = append(values, row.Key)
		}
		return values, true
	}
	return nil, false
}

func (r *Region) filterMachines(form url.Values, at time.Time) ([]*machine, error) {
	var found []*machine
	for _, m := range r.machines {
		if !m.isShown(r.config, at) {
			continue
		}
		fits, err := matchesFilters(form, func(name string) ([]string,
			bool) {
			return m.filterField(name, r.config, at)
		})
		if err != nil {
			return nil, err
		}
		if fits {
			found = append(found, m)
		}
	}
	return found, nil
}

// matchesFilters applies all filters of a form to a row.
func matchesFilters(form url.Values, field func(name string) ([]string, bool)) (bool, error) {
	for i := 1; form.Has(fmt.Sprintf("Filter.%d.Name", i)); i++ {
		name := form.Get(fmt.Sprintf("Filter.%d.Name", i))
		values, known := field(name)
		if !known {
			return false, newRefusal("InvalidParameterValue", "The filter '%s' is invalid", name)
		}
		wanted := listValues(form, fmt.Sprintf("Filter.%d.Value", i))
		if len(wanted) > 200 {
			return false, newRefusal("FilterLimitExceeded", "The maximum number of filter values is 200")
		}
		if !slices.ContainsFunc(wanted, func(pattern string) bool {
			return slices.ContainsFunc(values, wildcardPattern(pattern).MatchString)
		}) {
			return false, nil
		}
	}
	return true, nil
}

// wildcardPattern is a filter's pattern: * and ? stand for other characters, unless a
// backslash stands before them.
func wildcardPattern(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case pattern[i] == '*':
			b.WriteString("(?s:.*)")
		case pattern[i] == '?':
			b.WriteString("(?s:.)")
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	return regexp.MustCompile(b.String() + "$")
}

// cutPage cuts rows at what the request and the config allow.
func (r *Region) cutPage(form url.Values, rows []*machine) ([]*machine, string, error) {
	from := 0
	if token := form.Get("NextToken"); token != "" && token != "again" {
		var err error
		if from, err = strconv.Atoi(strings.TrimPrefix(token, "row-")); err != nil || from < 0 || from > len(rows) {
			return nil, "", newRefusal("InvalidPaginationToken", "The pagination token is invalid")
		}
	}
	size := len(rows)
	if text := form.Get("MaxResults"); text != "" {
		asked, err := strconv.Atoi(text)
		if err != nil || asked < 5 || asked > 1000 {
			return nil, "", newRefusal("InvalidParameterValue",
				"Value ( %s ) for parameter maxResults is invalid. Expecting a value between 5 and 1000.", text)
		}
		size = asked
	}
	if r.config.PageSize > 0 {
		size = min(size, r.config.PageSize)
	}
	to := min(len(rows), from+size)
	if to < len(rows) {
		return rows[from:to], "row-" + strconv.Itoa(to), nil
	}
	return rows[from:to], "", nil
}
