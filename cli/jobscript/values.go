package jobscript

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/cli/format"
)

// slurmTime has the forms of Slurm's lengths of time: M, M:S, H:M:S, D-H, D-H:M and D-H:M:S.
var slurmTime = regexp.MustCompile(`^(?:(\d{1,5})-)?(\d{1,7})(?::(\d{1,4}))?(?::(\d{1,4}))?$`)

func (t *translation) putTime(value string) error {
	length, err := parseTime(value)
	if err == nil {
		t.limit = length
		t.put("max-runtime", length.String())
	}
	return err
}

// errNoLimit says what bounds all jobs.
var errNoLimit = errors.New("no limit cannot be had: say how long it may run, at most 30 days, and within the pool's " +
	"longest lease (forewarm pools show POOL); left out, it is a day")

func parseTime(value string) (time.Duration, error) {
	if strings.EqualFold(value, "UNLIMITED") || strings.EqualFold(value, "INFINITE") {
		return 0, fmt.Errorf("%s: %w", value, errNoLimit)
	}
	m := slurmTime.FindStringSubmatch(value)
	if m == nil {
		return 0, fmt.Errorf("%q is no length of time: write minutes, hours:minutes:seconds or days-hours", value)
	}
	var n [4]time.Duration // days, and three numbers whose meaning depends on how many there are
	for i, text := range m[1:] {
		part, _ := strconv.Atoi(text) // digits alone, and few of them
		n[i] = time.Duration(part)
	}
	hours, minutes, seconds := n[1], n[2], n[3]
	switch {
	case m[1] != "": // days are there, and the first of the numbers is of hours
	case m[3] == "": // minutes alone
		hours, minutes = 0, n[1]
	case m[4] == "": // minutes and seconds
		hours, minutes, seconds = 0, n[1], n[2]
	}
	length := n[0]*24*time.Hour + hours*time.Hour + minutes*time.Minute + seconds*time.Second
	if length == 0 {
		return 0, errNoLimit
	}
	return length, nil
}

func (t *translation) putNodes(value string) (err error) {
	least, most, ranged := strings.Cut(value, "-")
	if ranged && least != most {
		return fmt.Errorf("%s: a job has one number of nodes", value)
	}
	t.nodes, err = parseCount(least)
	return err
}

func (t *translation) putGPUs(value string) (err error) {
	t.gpus, err = t.countGPUs(value)
	return err
}

func (t *translation) putPerNode(value string) (err error) {
	t.perNode, err = t.countGPUs(value)
	return err
}

func (t *translation) putGres(value string) error {
	rest, ok := strings.CutPrefix(value, "gpu")
	if !ok || strings.Contains(rest, ",") || rest != "" && rest[0] != ':' {
		return fmt.Errorf("%s: of generic resources there are GPUs alone", value)
	}
	rest = strings.TrimPrefix(rest, ":")
	if rest == "" {
		rest = "1"
	} else if _, err := strconv.Atoi(rest); err != nil && !strings.Contains(rest, ":") {
		rest += ":1" // a type alone
	}
	return t.putPerNode(rest)
}

// countGPUs reads a number of GPUs, which may follow their type.
func (t *translation) countGPUs(value string) (int, error) {
	model, count, typed := strings.Cut(value, ":")
	if !typed {
		return parseCount(value)
	}
	t.put("model", model)
	return parseCount(count)
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q must be a whole number of 1 or more", text)
	}
	return n, nil
}

func (t *translation) putPartition(value string) error {
	if strings.Contains(value, ",") {
		return fmt.Errorf("%s: a job goes to one pool; #FW --model MODEL takes any that has such GPUs", value)
	}
	t.put("pool", value)
	return nil
}

// putCPUs tells the script what it asked for, which is read for numbers of threads.
func (t *translation) putCPUs(value string) error {
	n, err := parseCount(value)
	if err != nil {
		return err
	}
	t.leaveOut(onlyGPUs)
	t.put("env", "SLURM_CPUS_PER_TASK="+strconv.Itoa(n))
	return nil
}

// conditions are the kinds of dependencies that forewarm has, too.
var conditions = []string{"after", "afterok", "afternotok", "afterany", "aftercorr"}

func (t *translation) putDependency(value string) error {
	for part := range strings.SplitSeq(value, ",") {
		words := strings.Split(part, ":")
		if part == "singleton" {
			t.put("after", part)
			continue
		}
		if strings.Contains(part, "?") || !slices.Contains(conditions, words[0]) || len(words) < 2 {
			return fmt.Errorf("%s: write %s and the jobs, as in afterok:JOB", part, strings.Join(conditions, ", "))
		}
		for _, job := range words[1:] {
			if strings.Contains(job, "+") {
				return fmt.Errorf("%s: a time after another job's start cannot be had", part)
			}
			t.put("after", job+":"+words[0])
		}
	}
	return nil
}

// signalForm has the forms of --signal. With B: the shell of the script alone gets it.
var signalForm = regexp.MustCompile(`^(?:([BR]+):)?(?:SIG)?(\w+)(?:@(\d{1,6}))?$`)

// signalNumbers are the numbers that people write for signals.
var signalNumbers = map[string]string{"1": "HUP", "2": "INT", "10": "USR1", "12": "USR2", "15": "TERM"}

func (t *translation) putSignal(value string) error {
	m := signalForm.FindStringSubmatch(value)
	if m == nil {
		return fmt.Errorf("%s: write a signal and how many seconds before the end it comes, as in B:USR1@60", value)
	}
	name, before := m[2], m[3]
	if known, ok := signalNumbers[name]; ok {
		name = known
	}
	if strings.Contains(m[1], "B") {
		name = "B:" + name
	}
	t.signal = signal{name: name, given: before != "", onLine: t.onLine}
	if before == "" {
		before = usualLead
	}
	seconds, err := strconv.Atoi(before)
	t.signal.lead = time.Duration(seconds) * time.Second
	return err
}

// signal is a signal that comes before a job's time is over.
type signal struct {
	name   string // empty: none
	lead   time.Duration
	given  bool // the lead was said
	onLine bool // the signal was given on the command line
}

// usualLead is how many seconds before the end a signal comes of which nothing else is said, in Slurm as here.
const usualLead = "60"

// putCheckpoint has the signal come, and, as in Slurm, as early as can be where that would be before the job's begin.
func (t *translation) putCheckpoint() {
	s := t.signal
	if s.name == "" {
		return
	}
	if t.limit > time.Second && s.lead >= t.limit {
		s.lead, s.given = t.limit-time.Second, true
		t.note(fmt.Sprintf("--signal: of a job of %s it comes %s before the end, as early as can be",
			format.Duration(t.limit), format.Duration(s.lead)))
	}
	text := s.name
	if s.given {
		text += fmt.Sprintf("@%ds", int64(s.lead/time.Second))
	}
	t.onLine = s.onLine
	t.put("checkpoint", text)
}

var (
	beginLater = regexp.MustCompile(`^now\+(\d{1,6})(|seconds?|minutes?|hours?|days?|weeks?)$`)
	beginClock = regexp.MustCompile(`^(\d\d:\d\d)(?::\d\d)?$`)
	beginDate  = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	beginWhole = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$`)
	beginNames = map[string]string{"now": "now", "midnight": "00:00", "noon": "12:00", "tomorrow": "tomorrow 00:00"}
	beginUnits = map[string]time.Duration{"": time.Second, "second": time.Second, "minute": time.Minute,
		"hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}
)

func (t *translation) putBegin(value string) error {
	at, known := beginNames[value]
	later, onClock := beginLater.FindStringSubmatch(value), beginClock.FindStringSubmatch(value)
	switch {
	case known:
	case later != nil:
		n, _ := strconv.Atoi(later[1])
		at = "in " + (time.Duration(n) * beginUnits[strings.TrimSuffix(later[2], "s")]).String()
	case onClock != nil:
		at = onClock[1]
	case beginDate.MatchString(value):
		at = value + "T00:00"
	case beginWhole.MatchString(value):
		at = value
	default:
		return fmt.Errorf("%q is no time that forewarm reads: write 2026-11-20T09:00, 09:00 or now+2hours", value)
	}
	t.put("not-before", at)
	return nil
}

func (t *translation) putExport(value string) error {
	for part := range strings.SplitSeq(value, ",") {
		name, text, given := strings.Cut(part, "=")
		switch {
		case name == "" || name == "NONE" || name == "NIL":
		case name == "ALL":
			t.note(ownEnvironment)
		case given:
			t.put("env", name+"="+text)
		default:
			t.put("env", name+"="+t.getenv(name))
		}
	}
	return nil
}
