package history

import (
	"strconv"
	"strings"
)

// NewSqueue returns a parser for the text of Slurm's squeue: the jobs that are
// there now, for clusters without accounting, or in between two looks of sacct.
// Its lines are separated by bars, after a header row, as
//
//	squeue --array --states=all -O 'JobArrayID:|,SubmitTime:|,StartTime:|,EndTime:|,State:|,Account:|,'\
//	'Partition:|,NumNodes:|,tres-alloc:|,tres-per-job:|,tres-per-node:|,UserName:|,Name:|'
//
// makes them. Ids are those of sacct.
func NewSqueue(o Options) Parser { return &squeueParser{sacct: &sacctParser{options: o}} }

// squeueParser reads the columns of squeue as those of sacct, where they mean
// the same.
type squeueParser struct {
	sacct   *sacctParser
	columns columns
	ready   bool
	err     error
}

// Header reports whether the header row is still to come.
func (p *squeueParser) Header() bool { return !p.ready }

// Parse reads one line.
func (p *squeueParser) Parse(text string) (Record, bool, error) {
	if p.err != nil {
		return Record{}, false, p.err
	}
	row := strings.Split(text, "|")
	if !p.ready {
		p.ready = true
		p.columns, p.err = squeueColumns(row)
		return Record{}, false, p.err
	}
	row = p.columns.foldSeparators(row, "name")
	if len(row) != p.columns.width {
		return Record{}, false, errWidth
	}
	fields, err := p.mapFields(row)
	if err != nil {
		return Record{}, false, err
	}
	return p.sacct.parseJob(func(name string) string { return fields[name] })
}

func squeueColumns(names []string) (columns, error) {
	c, err := newColumns(names, []string{"JobID", "Submit_Time", "State", "Nodes", "TRES_Per_Node"})
	if err != nil {
		return columns{}, err
	}
	if _, named := c.index["name"]; !named {
		return columns{}, &HeaderError{Missing: []string{"Name"}, Why: whyNames}
	}
	return c, nil
}

// mapFields are a row's by the names of sacct. A start or an end that is still to
// come is what Slurm expects, not what was.
func (p *squeueParser) mapFields(row []string) (map[string]string, error) {
	get := func(name string) string { return p.columns.fieldOf(row, name) }
	gpus, err := p.countGPUs(get)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{
		"jobname": get("name"), "comment": get("comment"), "user": get("user"),
		"jobid": get("jobid"), "submit": get("submit_time"), "state": get("state"),
		"partition": get("partition"), "alloctres": "gres/gpu=" + strconv.Itoa(gpus),
	}
	if account := get("account"); account != "(null)" {
		fields["account"] = account
	}
	switch ParseState(get("state")) {
	case Pending:
	case Running:
		fields["start"] = get("start_time")
	default:
		fields["start"], fields["end"] = get("start_time"), get("end_time")
	}
	return fields, nil
}

// countGPUs counts those of the whole job: what it was given, else what it asked for.
func (p *squeueParser) countGPUs(get func(string) string) (int, error) {
	if n, err := gpusInTRES(get("tres_alloc")); err != nil || n > 0 {
		return n, err
	}
	if n, err := gpusInGRES(get("tres_per_job")); err != nil || n > 0 {
		return n, err
	}
	each, err := gpusInGRES(get("tres_per_node"))
	if err != nil || each == 0 {
		return 0, err
	}
	least, _, _ := strings.Cut(get("nodes"), "-")
	nodes, err := strconv.Atoi(least)
	if err != nil || nodes < 0 || nodes > MaxGPUs {
		return 0, &RowError{Field: "NODES", Rule: "must be a number of nodes"}
	}
	return min(each*nodes, MaxGPUs+1), nil
}

// gpusInGRES reads a request such as gres:gpu:a100:2 or, since Slurm 23.11,
// gres/gpu:2. A request without a count is for one.
func gpusInGRES(list string) (int, error) {
	total := 0
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimPrefix(strings.TrimPrefix(entry, "gres:"), "gres/")
		parts := strings.FieldsFunc(entry, func(r rune) bool { return r == ':' || r == '=' })
		if len(parts) == 0 || parts[0] != "gpu" {
			continue
		}
		n, err := strconv.Atoi(parts[len(parts)-1])
		switch {
		case err != nil && len(parts) <= 2:
			n = 1
		case err != nil || n < 0 || n > MaxGPUs:
			return 0, &RowError{Field: "TRES_PER_NODE", Rule: "must hold GPUs as a whole number from 1 to 100000"}
		}
		total = min(total+n, MaxGPUs+1)
	}
	return total, nil
}
