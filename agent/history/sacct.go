package history

import (
	"strconv"
	"strings"
	"time"
)

type sacctParser struct {
	options Options
	columns columns
	ready   bool
	err     error
}

// NewSacct returns a parser for the format of ReadSacct. It needs the columns
// JobID, Submit, JobName and AllocTRES or ReqTRES, and uses Start, End,
// ElapsedRaw, State, Account, Partition, User and Comment where they are. JobName stands
// last, so that a bar in a name breaks nothing.
func NewSacct(o Options) Parser { return &sacctParser{options: o} }

// Header reports whether the header row is still to come.
func (p *sacctParser) Header() bool { return !p.ready }

// Parse reads one line.
func (p *sacctParser) Parse(text string) (Record, bool, error) {
	if p.err != nil {
		return Record{}, false, p.err
	}
	row := strings.Split(text, "|")
	if !p.ready {
		p.ready = true
		p.columns, p.err = sacctColumns(row)
		return Record{}, false, p.err
	}
	row = p.columns.foldSeparators(row, "jobname")
	if len(row) != p.columns.width {
		return Record{}, false, errWidth
	}
	return p.parseJob(func(name string) string { return p.columns.fieldOf(row, name) })
}

func sacctColumns(names []string) (columns, error) {
	c, err := newColumns(names, []string{"JobID", "Submit"})
	if err != nil {
		return columns{}, err
	}
	if _, named := c.index["jobname"]; !named {
		return columns{}, &HeaderError{Missing: []string{"JobName"}, Why: whyNames}
	}
	_, allocated := c.index["alloctres"]
	_, requested := c.index["reqtres"]
	if !allocated && !requested {
		return columns{}, &HeaderError{Missing: []string{"AllocTRES or ReqTRES"}}
	}
	return c, nil
}

// parseJob makes the record of a row, unless it is a job step, has no GPU or is a
// placeholder of Forewarm.
func (p *sacctParser) parseJob(get func(string) string) (Record, bool, error) {
	id := get("jobid")
	resembles := isOwn(get("jobname"), get("comment"))
	if strings.Contains(id, ".") || resembles && p.options.isOwnUser(get("user")) {
		return Record{}, false, nil
	}
	if id == "" || len(id) > MaxName {
		return Record{}, false, &RowError{Field: "JobID", Rule: "must be 1 to 256 bytes"}
	}
	gpus, err := firstTRES(get("alloctres"), get("reqtres"))
	if err != nil || gpus == 0 {
		return Record{}, false, err
	}
	r := Record{
		ID: Pseudonym(p.options.Salt, id), Tenant: get("account"), GPUs: gpus,
		State: ParseState(get("state")), ResemblesOwn: resembles,
		Class: p.options.hashOf(get("user"), get("jobname")),
	}
	if array, _, isTask := strings.Cut(id, "_"); isTask {
		r.Array = p.options.hashOf(array)
	}
	if r.Tenant == "" {
		r.Tenant = get("partition")
	}
	if err := p.readTimes(&r, get); err != nil {
		return Record{}, false, err
	}
	err = r.Validate()
	return r, err == nil, err
}

// readTimes reads when the job was submitted, started and ended. ElapsedRaw wins
// over the difference, which is wrong by an hour across a change of summer time.
func (p *sacctParser) readTimes(r *Record, get func(string) string) error {
	var err error
	if r.Submitted, err = p.parseTime("Submit", get("submit")); err != nil {
		return err
	}
	if r.Submitted.IsZero() {
		return &RowError{Field: "Submit", Rule: "must be known"}
	}
	if r.Started, err = p.parseTime("Start", get("start")); err != nil {
		return err
	}
	if r.Ended, err = p.parseTime("End", get("end")); err != nil {
		return err
	}
	if r.Started.IsZero() || r.Ended.IsZero() {
		return nil
	}
	elapsed := get("elapsedraw")
	if elapsed != "" && elapsed != "0" {
		if r.Duration, err = parseSeconds("ElapsedRaw", elapsed); err != nil {
			return err
		}
		r.Ended = r.Started.Add(r.Duration)
		return nil
	}
	r.Duration = r.Ended.Sub(r.Started)
	return nil
}

// parseTime reads one time of sacct: its default form in the parser's zone, or Unix
// seconds (SLURM_TIME_FORMAT=%s). Unknown and None are the zero time.
func (p *sacctParser) parseTime(field, text string) (time.Time, error) {
	switch strings.ToLower(text) {
	case "", "unknown", "none", "n/a":
		return time.Time{}, nil
	}
	if !strings.Contains(text, "T") {
		return unixTime(field, text)
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", text, p.options.zone())
	if err != nil || !isPlausible(t) {
		return time.Time{},
			&RowError{Field: field, Rule: "must be a time like 2026-01-31T13:05:00, Unix seconds or Unknown"}
	}
	return t.UTC(), nil
}

// firstTRES returns the GPUs of the first list that names any.
func firstTRES(lists ...string) (int, error) {
	for _, list := range lists {
		if n, err := gpusInTRES(list); err != nil || n > 0 {
			return n, err
		}
	}
	return 0, nil
}

// gpusInTRES reads a list such as cpu=8,gres/gpu=4,gres/gpu:a100=4. Slurm names
// the total and each type: the total wins, else the types are added.
func gpusInTRES(list string) (int, error) {
	typed := 0
	for entry := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(entry, "=")
		name, isGPU := strings.CutPrefix(name, "gres/gpu")
		if !isGPU || (name != "" && name[0] != ':') {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > MaxGPUs {
			return 0, &RowError{Field: "TRES", Rule: "must hold gres/gpu as a whole number from 1 to 100000"}
		}
		if name == "" {
			return n, nil
		}
		typed = min(typed+n, MaxGPUs+1)
	}
	return typed, nil
}
