package history

import (
	"math"
	"strconv"
	"time"
)

// traceRow is one row of the trace schema, still text, from CSV or JSON.
type traceRow struct {
	id, group, user, submitted, started, duration, gpus, status string
	name, comment, labels, array                                string
	nameless                                                    bool // it has no place for any of the three
}

// isOurs reports whether the row is about a placeholder of Forewarm. In Kubernetes its labels say so, whoever the
// user is.
func (t traceRow) isOurs(o Options) bool {
	return isOwn(t.labels) || t.resemblesOwn() && o.isOwnUser(t.user)
}

func (t traceRow) resemblesOwn() bool { return isOwn(t.id, t.name, t.comment) }

// toRecord checks the row and makes its record. The tenant is the group, or the
// user where there is no group.
func (t traceRow) toRecord(o Options) (Record, error) {
	if t.id == "" || len(t.id) > MaxName {
		return Record{}, &RowError{Field: "job_id", Rule: "must be 1 to 256 bytes"}
	}
	submitted, err := unixTime("submit_ts", t.submitted)
	if err != nil {
		return Record{}, err
	}
	duration, err := parseSeconds("duration_s", t.duration)
	if err != nil {
		return Record{}, err
	}
	gpus, err := wholeGPUs("gpus", t.gpus)
	if err != nil {
		return Record{}, err
	}
	tenant := t.group
	if tenant == "" {
		tenant = t.user
	}
	r := Record{
		ID: Pseudonym(o.Salt, t.id), Tenant: tenant, Submitted: submitted,
		Duration: duration, GPUs: gpus, State: ParseState(t.status),
		Class: o.hashOf(t.user, t.name), Nameless: t.nameless, ResemblesOwn: t.resemblesOwn(),
	}
	if t.array != "" {
		r.Array = o.hashOf(t.array)
	}
	if t.started != "" {
		if r.Started, err = unixTime("start_ts", t.started); err != nil {
			return Record{}, err
		}
		if duration > 0 {
			r.Ended = r.Started.Add(duration)
		}
	}
	return r, r.Validate()
}

// parseNumber reads a finite number.
func parseNumber(field, text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, &RowError{Field: field, Rule: "must be a number"}
	}
	return n, nil
}

// unixTime reads Unix seconds, cut to microseconds like every stored time.
func unixTime(field, text string) (time.Time, error) {
	n, err := parseNumber(field, text)
	if err != nil {
		return time.Time{}, err
	}
	if n < float64(earliest.Unix()) || n >= float64(latest.Unix()) {
		return time.Time{}, &RowError{Field: field, Rule: "must be Unix seconds between 1990 and 2200"}
	}
	whole := math.Floor(n)
	return time.Unix(int64(whole), 0).Add(time.Duration((n - whole) * 1e9)).UTC().Truncate(time.Microsecond), nil
}

// parseSeconds reads a run time; an empty text is unknown, which is 0.
func parseSeconds(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	n, err := parseNumber(field, text)
	if err != nil {
		return 0, err
	}
	if n <= 0 || n > MaxDuration.Seconds() {
		return 0, &RowError{Field: field, Rule: "must be over 0 and at most 10 years, or empty when unknown"}
	}
	return time.Duration(n * float64(time.Second)).Truncate(time.Microsecond), nil
}

// wholeGPUs reads a GPU count; 8.0 is accepted for 8.
func wholeGPUs(field, text string) (int, error) {
	n, err := parseNumber(field, text)
	if err != nil {
		return 0, err
	}
	if n < 1 || n > MaxGPUs || n != math.Trunc(n) {
		return 0, &RowError{Field: field, Rule: "must be a whole number from 1 to 100000"}
	}
	return int(n), nil
}
