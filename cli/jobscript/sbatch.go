package jobscript

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// translation puts flags of sbatch into flags of forewarm run.
type translation struct {
	getenv func(string) string
	flags  []string
	notes  []string
	flag   string // that is being put
	left   []leftOut

	nodes, gpus, perNode int
}

// leftOut are flags that change nothing here, for one reason.
type leftOut struct {
	flags []string
	why   string
}

// leaveOut keeps that the flag which is being put changes nothing.
func (t *translation) leaveOut(why string) {
	flag := "--" + t.flag
	for i := range t.left {
		if t.left[i].why == why {
			if !slices.Contains(t.left[i].flags, flag) {
				t.left[i].flags = append(t.left[i].flags, flag)
			}
			return
		}
	}
	t.left = append(t.left, leftOut{[]string{flag}, why})
}

// allNotes is what the user should know.
func (t *translation) allNotes() []string {
	all := slices.Clone(t.notes)
	for _, l := range t.left {
		all = append(all, "left out: "+strings.Join(l.flags, ", ")+": "+l.why)
	}
	return all
}

// sbatchFlag is a flag of sbatch. What is not among them is refused by name.
type sbatchFlag struct {
	long  string
	short string
	bare  bool // it takes no value
	// optional says that it takes a value only behind =.
	optional bool
	put      func(t *translation, value string) error
}

var sbatchFlags = []sbatchFlag{
	{long: "job-name", short: "J", put: becomes("name")},
	{long: "time", short: "t", put: (*translation).putTime},
	{long: "nodes", short: "N", put: (*translation).putNodes},
	{long: "gpus", short: "G", put: (*translation).putGPUs},
	{long: "gpus-per-node", put: (*translation).putPerNode},
	{long: "gres", put: (*translation).putGres},
	{long: "partition", short: "p", put: (*translation).putPartition},
	{long: "array", short: "a", put: becomes("array")},
	{long: "dependency", short: "d", put: (*translation).putDependency},
	{long: "reservation", put: becomes("reservation")},
	{long: "constraint", short: "C", put: (*translation).putConstraint},
	{long: "prefer", put: (*translation).putPreferred},
	{long: "exclude", short: "x", put: (*translation).putExcluded},
	{long: "chdir", short: "D", put: becomes("dir")},
	{long: "requeue", bare: true, put: means("--retries-lost=3")},
	{long: "no-requeue", bare: true, put: means("--retries-lost=0")},
	{long: "signal", put: (*translation).putSignal},
	{long: "begin", short: "b", put: (*translation).putBegin},
	{long: "hold", short: "H", bare: true, put: means("--hold")},
	{long: "export", put: (*translation).putExport},
	{long: "ntasks", short: "n", put: onlyOne("forewarm run starts the command once on each node")},
	{long: "ntasks-per-node", put: onlyOne("forewarm run starts the command once on each node")},
	{long: "exclusive", optional: true, put: refused("ask for all GPUs of a node, as in --gpus-per-node=8: " +
		"others then have none there")},
	{long: "nodelist", short: "w", put: refused("write --constraint LABEL in a line #FW: forewarm nodes show NODE has " +
		"the labels, and --exclude keeps a job off a node")},
	{long: "deadline", put: refused("a job has --max-runtime, and no time by which it has to be over")},
	{long: "wait", short: "W", bare: true, put: refused("leave out -d of forewarm run, or use forewarm wait JOB")},
	{long: "mail-type", put: ignored(noMail)},
	{long: "mail-user", put: ignored(noMail)},
	{long: "comment", put: ignored("a job has a name, and no comment")},
	{long: "account", short: "A", put: ignored(whosePays)},
	{long: "wckey", put: ignored(whosePays)},
	{long: "qos", short: "q", put: ignored(whoGoesFirst)},
	{long: "nice", optional: true, put: ignored(whoGoesFirst)},
	{long: "parsable", optional: true, put: ignored(printsID)},
	{long: "quiet", short: "Q", bare: true, put: ignored(printsID)},
	{long: "verbose", short: "v", bare: true, put: ignored(printsID)},
	{long: "output", short: "o", put: ignored(whereOutput)},
	{long: "error", short: "e", put: ignored(whereOutput)},
	{long: "open-mode", put: ignored(whereOutput)},
	{long: "cpus-per-task", short: "c", put: (*translation).putCPUs},
	{long: "cpus-per-gpu", put: ignored(onlyGPUs)},
	{long: "mem", put: ignored(onlyGPUs)},
	{long: "mem-per-cpu", put: ignored(onlyGPUs)},
	{long: "mem-per-gpu", put: ignored(onlyGPUs)},
	{long: "hint", put: ignored(onlyGPUs)},
	{long: "threads-per-core", put: ignored(onlyGPUs)},
	{long: "gpu-bind", put: ignored("a job sees its own GPUs alone")},
	{long: "switches", put: ignored("the nodes of a job are near each other where that can be")},
	{long: "wait-all-nodes", put: ignored("a job starts once all of its nodes are there")},
	{long: "get-user-env", optional: true, put: ignored(ownEnvironment)},
	{long: "no-kill", short: "k", optional: true, put: ignored("a job ends with any of its nodes, and is tried again")},
	{long: "kill-on-invalid-dep", put: ignored("a job fails that waits for what can never come true")},
	{long: "input", short: "i", put: refused("write --input FILE in a line #FW: the file is sent with the job")},
	{long: "time-min", put: refused("a job has one limit, --time: say the shorter one, and it may start earlier")},
	{long: "licenses", short: "L", put: refused("an array may say how many of it run at a time, as in --array=0-9%2")},
}

const (
	noMail       = "nobody is sent mail: forewarm wait JOB ends when a job does"
	whosePays    = "a job is its organization's, which the key says that submits it"
	whoGoesFirst = "--priority low, normal or high says who goes first"
	printsID     = "forewarm run -d prints the job's id, and nothing else, on its standard output"
	whereOutput  = "output is kept, and forewarm jobs logs JOB shows it"
	// ownEnvironment is what a job gets of its own.
	ownEnvironment = "the environment here is not the job's: --env NAME=VALUE gives it a variable"
	onlyGPUs       = "GPUs are given out, and the node's processors and memory are shared by those who have them"
)

// putAll translates the words of a line.
func (t *translation) putAll(words []string) error {
	for len(words) > 0 {
		flag, value, rest, err := nextFlag(words)
		if err != nil {
			return err
		}
		t.flag = flag.long
		if err := flag.put(t, value); err != nil {
			return fmt.Errorf("--%s: %w", flag.long, err)
		}
		words = rest
	}
	return nil
}

// nextFlag takes a flag and its value from the front of words.
func nextFlag(words []string) (flag sbatchFlag, value string, rest []string, err error) {
	word, rest := words[0], words[1:]
	name, long := strings.CutPrefix(word, "--")
	name, value, given := strings.Cut(name, "=")
	if !long && len(word) > 1 {
		name, value = word[1:2], strings.TrimPrefix(word[2:], "=")
		given = value != ""
	}
	at := slices.IndexFunc(sbatchFlags, func(f sbatchFlag) bool {
		return long && name == f.long || !long && name == f.short
	})
	switch {
	case !strings.HasPrefix(word, "-"):
		return flag, "", nil, fmt.Errorf("%q is no flag", word)
	case at < 0:
		return flag, "", nil, fmt.Errorf("forewarm does not know %s of #SBATCH: take it out, or say what it is for "+
			"by a flag of forewarm run in a line #FW", strings.SplitN(word, "=", 2)[0])
	case sbatchFlags[at].bare && given:
		return flag, "", nil, fmt.Errorf("--%s takes no value", sbatchFlags[at].long)
	case !sbatchFlags[at].bare && !sbatchFlags[at].optional && !given:
		if len(rest) == 0 {
			return flag, "", nil, fmt.Errorf("--%s needs a value", sbatchFlags[at].long)
		}
		value, rest = rest[0], rest[1:]
	}
	return sbatchFlags[at], value, rest, nil
}

// finish is all flags: what is said of each node is of one node, unless there is a number of them.
func (t *translation) finish() []string {
	if t.perNode > 0 && t.nodes == 0 && t.gpus == 0 {
		t.gpus, t.perNode = t.perNode, 0
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"gpus", t.gpus}, {"nodes", t.nodes}, {"gpus-per-node", t.perNode}} {
		if f.n > 0 {
			t.put(f.name, strconv.Itoa(f.n))
		}
	}
	return t.flags
}

func (t *translation) put(flag, value string) { t.flags = append(t.flags, "--"+flag+"="+value) }

// becomes is a flag with the same value under another name.
func becomes(flag string) func(*translation, string) error {
	return func(t *translation, value string) error {
		t.put(flag, value)
		return nil
	}
}

// means is a flag that stands for one word.
func means(word string) func(*translation, string) error {
	return func(t *translation, _ string) error {
		t.flags = append(t.flags, word)
		return nil
	}
}

// ignored is a flag that changes nothing here; instead says why.
func ignored(instead string) func(*translation, string) error {
	return func(t *translation, _ string) error {
		t.leaveOut(instead)
		return nil
	}
}

// refused is a flag that would change what runs, and cannot be had; instead says what can.
func refused(instead string) func(*translation, string) error {
	return func(*translation, string) error { return errors.New("it cannot be had: " + instead) }
}

// note keeps what the user should know, once.
func (t *translation) note(text string) {
	if !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

// onlyOne is a flag that may say 1 and nothing else.
func onlyOne(why string) func(*translation, string) error {
	return func(_ *translation, value string) error {
		if value != "1" {
			return fmt.Errorf("%s cannot be had: %s", value, why)
		}
		return nil
	}
}
