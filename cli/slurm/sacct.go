package slurm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/coldstart"
)

// sacctColumns are asked for. Nothing is among them that a user writes for people, who
// may write lines that look like other jobs.
const sacctColumns = "JobID,Submit,Eligible,Start,End,State,Partition,NodeList,AllocTRES,Reason,User"

// nameColumn tells Forewarm's own jobs. A file may have it as its last column, so that a
// bar in it breaks nothing; a cluster is asked for it of Forewarm's user alone.
const nameColumn = "jobname"

// sacctArgs are those of every question to accounting: every run of every job,
// without steps, with its nodes.
var sacctArgs = []string{"--allusers", "--allocations", "--duplicates", "--parsable2", "--format=" + sacctColumns}

// sacctLine is what a user types to save a history.
const sacctLine = "SLURM_TIME_FORMAT=%s sacct --allusers --allocations --duplicates --parsable2 " +
	"--starttime=now-35days --format=" + sacctColumns + " > jobs.sacct"

// past is a history as it was read.
type past struct {
	jobs       []coldstart.Job
	rows       int
	neverRan   int // waiting, or cancelled before they had a node
	running    int
	broken     int    // rows that cannot be read
	firstWrong string // what is wrong with the first of them
	users      map[string]bool
}

// sacctReader reads the text of sacct.
type sacctReader struct {
	zone    *time.Location  // of times without one; nil refuses them
	ownUser string          // the user of Forewarm's own jobs; empty: any
	own     map[string]bool // the runs of their jobs, where they are known
	columns map[string]int
	past    past
	byRun   map[string]int // index of a run's job
}

func newSacctReader(zone *time.Location, ownUser string) *sacctReader {
	return &sacctReader{zone: zone, ownUser: ownUser, byRun: map[string]int{}, past: past{users: map[string]bool{}}}
}

// longestRow is the longest line that is read: the nodes of a job may be many.
const longestRow = 4 << 20

var errHeader = errors.New("the history has no header with the columns that are needed")

// read takes in the rows of one more text, whose first line names the columns.
func (r *sacctReader) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), longestRow)
	r.columns = nil
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		if r.columns == nil {
			if err := r.readHeader(strings.TrimPrefix(line, "\ufeff")); err != nil {
				return err
			}
			continue
		}
		if line != "" {
			r.readRow(line)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the history: %w", err)
	}
	if r.columns == nil {
		return errHeader
	}
	return nil
}

func (r *sacctReader) readHeader(line string) error {
	columns := map[string]int{}
	for i, name := range strings.Split(line, "|") {
		columns[strings.ToLower(strings.TrimSpace(name))] = i
	}
	var missing []string
	for name := range strings.SplitSeq(sacctColumns, ",") {
		if _, there := columns[strings.ToLower(name)]; !there && name != "Reason" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s", errHeader, strings.Join(missing, ", "))
	}
	r.columns = columns
	return nil
}

// readRow takes in one row. A broken one is counted, and says why if it is the
// first.
func (r *sacctReader) readRow(line string) {
	r.past.rows++
	if err := r.addRow(line); err != nil {
		if r.past.broken++; r.past.broken == 1 {
			r.past.firstWrong = fmt.Sprintf("row %d: %v", r.past.rows, err)
		}
	}
}

func (r *sacctReader) addRow(line string) error {
	cells := strings.Split(line, "|")
	if more := len(cells) - len(r.columns); more > 0 && r.columns[nameColumn] == len(r.columns)-1 {
		last := len(r.columns) - 1
		cells = append(cells[:last:last], strings.Join(cells[last:], "|"))
	}
	if len(cells) != len(r.columns) {
		return fmt.Errorf("has %d columns, want %d", len(cells), len(r.columns))
	}
	get := func(name string) string {
		if i, there := r.columns[name]; there {
			return strings.TrimSpace(cells[i])
		}
		return ""
	}
	if strings.Contains(get("jobid"), ".") {
		return nil // a step, where the rows were not asked for without
	}
	job, ran, err := r.parseJob(get)
	switch {
	case err != nil:
		return err
	case !ran:
		r.past.neverRan++
		return nil
	}
	r.addJob(job, get("user"))
	return nil
}

// addJob adds a run, or a component of one: those of a heterogeneous job start as
// one. A run that is told of again is the same one; what tells of its end counts.
func (r *sacctReader) addJob(job coldstart.Job, user string) {
	job.ID, _, _ = strings.Cut(job.ID, "+")
	run := fmt.Sprintf("%s@%d", job.ID, job.Start)
	i, known := r.byRun[run]
	if !known {
		r.byRun[run] = len(r.past.jobs)
		r.past.jobs = append(r.past.jobs, job)
		r.past.users[user] = true
		return
	}
	first := &r.past.jobs[i]
	if slices.ContainsFunc(job.Nodes, func(n string) bool { return !slices.Contains(first.Nodes, n) }) {
		first.Nodes = append(first.Nodes, job.Nodes...)
		slices.Sort(first.Nodes)
		first.Nodes = slices.Compact(first.Nodes)
		first.GPUs += job.GPUs
		return
	}
	if first.End == 0 {
		first.End = job.End
	}
}

// parseJob reads a run of a job; it is false when the job never had a node. That
// is told from its nodes and times, whatever its state is called.
func (r *sacctReader) parseJob(get func(string) string) (coldstart.Job, bool, error) {
	job := coldstart.Job{ID: get("jobid"), Partition: get("partition"), Hold: holdOf(get("reason"))}
	if job.ID == "" {
		return job, false, errors.New("it has no JobID")
	}
	list := get("nodelist")
	start, err := r.parseTime(get("start"))
	switch {
	case err != nil:
		return job, false, fmt.Errorf("its Start: %w", err)
	case start == 0, list == "", strings.HasPrefix(list, "None"), list == "(null)",
		hasNoStart(get("state")):
		return job, false, nil
	}
	job.Start = start
	if job.Nodes, err = expandHosts(list); err != nil {
		return job, false, errors.New("its NodeList is no list of hosts")
	}
	if job.GPUs, job.Model, err = gpusOf(get("alloctres")); err != nil {
		return job, false, err
	}
	job.Own = r.isOwn(get)
	return job, true, r.readTimes(&job, get)
}

// hasNoStart reports whether a state says that a job has not begun, whatever its Start is:
// it waits, or its nodes boot.
func hasNoStart(state string) bool {
	state = strings.ToUpper(state)
	return strings.HasPrefix(state, "PENDING") || strings.HasPrefix(state, "CONFIGURING")
}

// isOwn reports whether a run is one of Forewarm's own jobs. Where names are not there,
// its user's jobs all are.
func (r *sacctReader) isOwn(get func(string) string) bool {
	ofUser := get("user") == r.ownUser
	if r.own != nil {
		return ofUser && r.own[runOf(get("jobid"), get("start"))]
	}
	if _, named := r.columns[nameColumn]; named {
		return ownName.MatchString(get(nameColumn)) && (r.ownUser == "" || ofUser)
	}
	return r.ownUser != "" && ofUser
}

func runOf(job, start string) string { return job + "@" + start }

// ownArgs ask for the names of one user's jobs.
func ownArgs(user string) []string {
	return []string{"--user=" + user, "--allocations", "--duplicates", "--parsable2", "--noheader",
		"--format=JobID,Start,JobName"}
}

// readOwn takes in which runs of our user have a name of ours.
func (r *sacctReader) readOwn(text string) {
	if r.own == nil {
		r.own = map[string]bool{}
	}
	for line := range strings.Lines(text) {
		cells := strings.SplitN(strings.TrimRight(line, "\r\n"), "|", 3)
		if len(cells) == 3 && ownName.MatchString(cells[2]) {
			r.own[runOf(cells[0], cells[1])] = true
		}
	}
}

// readTimes reads when the job was submitted, could start and ended. A job that
// was requeued may be eligible later than it started the first time; nobody
// waited then. A clock set back by a second or two is no reason to lose a row.
func (r *sacctReader) readTimes(job *coldstart.Job, get func(string) string) error {
	var err error
	if job.Submit, err = r.parseTime(get("submit")); err != nil {
		return fmt.Errorf("its Submit: %w", err)
	}
	if job.Submit == 0 {
		return errors.New("its Submit is not known")
	}
	eligible, err := r.parseTime(get("eligible"))
	if err != nil {
		return fmt.Errorf("its Eligible: %w", err)
	}
	if job.End, err = r.parseTime(get("end")); err != nil {
		return fmt.Errorf("its End: %w", err)
	}
	job.Submit = min(job.Submit, job.Start)
	job.Ready = min(job.Start, max(job.Submit, eligible))
	if job.End == 0 {
		r.past.running++
	} else if job.End < job.Start {
		return errors.New("it ended before it started")
	}
	return nil
}

// latestTime bounds what is taken for a time: the year 2200.
const latestTime = 7_258_118_400

// What is wrong with a row is said without what stands in it, which may be
// anybody's name.
var errTime = errors.New("it is no time")

var errZone = errors.New("it is in local time: save it with SLURM_TIME_FORMAT=%s, or name its zone with --tz")

// parseTime reads Unix seconds, or sacct's own format in the reader's zone. Its
// words for none, in any language, are anything that begins with no digit.
func (r *sacctReader) parseTime(text string) (int64, error) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, nil
	}
	if !strings.Contains(text, "T") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n >= latestTime {
			return 0, errTime
		}
		return n, nil
	}
	if r.zone == nil {
		return 0, errZone
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", text, r.zone)
	if err != nil {
		return 0, errTime
	}
	return t.Unix(), nil
}

// ownName is how Forewarm calls the jobs that it submits itself.
var ownName = regexp.MustCompile(`^forewarm-[a-z0-9]`)

// limits are parts of Slurm's reasons that say that a limit held a job back.
var limits = []string{"QOS", "Assoc", "Max", "Grp", "Limit", "License", "Reservation"}

// holdOf sorts Slurm's last reason for not starting a job.
func holdOf(reason string) coldstart.Hold {
	switch {
	case strings.HasPrefix(reason, "Dependency"), strings.HasPrefix(reason, "BeginTime"),
		strings.HasPrefix(reason, "JobHeld"):
		return coldstart.Dependency
	case slices.ContainsFunc(limits, func(part string) bool { return strings.Contains(reason, part) }):
		return coldstart.Limit
	default:
		return coldstart.Unsaid
	}
}

// mostGPUs bounds the GPUs of one job.
const mostGPUs = 100_000

// gpusOf reads a list such as cpu=8,gres/gpu=4,gres/gpu:a100=4: the total, and
// the model where there is one. Where only models are counted, they are added.
func gpusOf(tres string) (total int, model string, err error) {
	typed, models := 0, 0
	for entry := range strings.SplitSeq(tres, ",") {
		name, value, _ := strings.Cut(entry, "=")
		kind, isGPU := strings.CutPrefix(name, "gres/gpu")
		if !isGPU || kind != "" && kind[0] != ':' {
			continue
		}
		n, bad := strconv.Atoi(value)
		if bad != nil || n < 0 || n > mostGPUs {
			return 0, "", errors.New("its AllocTRES has GPUs that are no number")
		}
		if kind == "" {
			total = n
			continue
		}
		typed, model, models = typed+n, kind[1:], models+1
	}
	if models != 1 {
		model = ""
	}
	return max(total, typed), model, nil
}
