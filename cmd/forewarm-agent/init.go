package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/agent/egress"
	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source/tail"
	"github.com/forewarm/forewarm/internal/statefile"
)

// found is what init saw, and what it was told.
type found struct {
	history, format  string
	rows, broken     int64
	missing          bool   // the history is still to be made
	tool             string // of the PATH, that makes it: sacct, squeue, kubectl or none
	llmKey           string // name of the environment variable
	endpoint, pool   string
	config, stateDir string
	force            bool // replaces a file that somebody changed
}

func initCommand(o outside) *cobra.Command {
	var f found
	c := &cobra.Command{
		Use: "init", Short: "Inspect this machine, read-only, and write one configuration file", Args: refuseArguments,
		Example: "  forewarm-agent init --history jobs.csv --pool a100-sim",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.lookAround(o.getenv); err != nil {
				return err
			}
			f.printFindings(cmd)
			if err := f.writeConfig(); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "✓ %s · nothing was sent\n%s", f.config, f.nextStep())
			return err
		},
	}
	c.Flags().StringVar(&f.config, "config", defaultConfig, "the file to write")
	c.Flags().StringVar(&f.history, "history", "",
		"job history to learn from: CSV, JSONL, or the text of sacct or squeue (default: what is found here)")
	c.Flags().StringVar(&f.endpoint, "endpoint", "http://127.0.0.1:8787", "address of the control plane")
	c.Flags().BoolVar(&f.force, "force", false, "replace the file, even if it was changed")
	c.Flags().StringVar(&f.pool, "pool", "", "id or name of the pool to keep warm")
	return c
}

// lookAround reads and changes nothing.
func (f *found) lookAround(getenv func(string) string) error {
	if err := egress.Check(f.endpoint); err != nil {
		return &usageError{fmt.Errorf("--endpoint %s: %w", f.endpoint, err)}
	}
	f.tool = firstOnPath("sacct", "squeue", "kubectl")
	if getenv("OPENAI_API_KEY") != "" {
		f.llmKey = "OPENAI_API_KEY"
	}
	folder, err := filepath.Abs(filepath.Dir(f.config))
	if err != nil {
		return fmt.Errorf("finding the folder of the configuration: %w", err)
	}
	f.stateDir = ownStateDir(getenv, filepath.Join(folder, filepath.Base(f.config)))
	if f.history == "" {
		f.findFiles(folder)
		return nil
	}
	if f.history, err = filepath.Abs(f.history); err != nil {
		return fmt.Errorf("finding the history: %w", err)
	}
	return f.tryHistory()
}

// firstOnPath returns the first of the programs that can be run, or nothing.
func firstOnPath(names ...string) string {
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			return name
		}
	}
	return ""
}

// findFiles takes the first history that lies beside the configuration under a usual name; without one, it
// names the file that is still to be made.
func (f *found) findFiles(folder string) {
	for _, name := range []string{"jobs.sacct", "jobs.squeue", "jobs.csv", "jobs.jsonl", "jobs.csv.gz",
		"jobs.jsonl.gz"} {
		f.history = filepath.Join(folder, name)
		if _, err := os.Stat(f.history); err == nil && f.tryHistory() == nil {
			return
		}
	}
	f.missing, f.format = true, "csv"
	if f.tool == "sacct" || f.tool == "squeue" {
		f.format = f.tool
	}
	f.history = filepath.Join(folder, "jobs."+f.format)
}

// historyCommand makes the history that is missing, or says what it must be.
func (f *found) historyCommand() string {
	switch f.format {
	case "sacct":
		return sacctLine
	case "squeue":
		return squeueLine
	default:
		return "a CSV file with the columns job_id, submit_ts (Unix seconds), gpus and name"
	}
}

// nextStep says what to do now.
func (f *found) nextStep() string {
	if !f.missing {
		return fmt.Sprintf("Next:  forewarm-agent run --dry-run --config %s\n", f.config)
	}
	return fmt.Sprintf("· MISSING: %s is not there, and the agent does not start without a history\nNext:  make it: "+
		"%s\n"+
		"       or name another: forewarm-agent init --history FILE --config %s\n", f.history, f.historyCommand(),
		f.config)
}

// tryHistory reads the history in the form that its name says, else in the first form
// that gives records.
func (f *found) tryHistory() error {
	if _, err := os.Stat(f.history); errors.Is(err, fs.ErrNotExist) {
		return &usageError{fmt.Errorf("--history %s: there is no such file", f.history)}
	}
	forms := []string{"csv", "jsonl", "sacct", "squeue"}
	if ext := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(f.history, ".gz")), "."); slices.Contains(forms, ext) {
		forms = []string{ext}
	}
	var last error
	for _, form := range forms {
		report, err := readHistory(f.history, form)
		if err == nil && report.Kept > 0 {
			f.format, f.rows, f.broken = form, report.Kept, report.Broken
			return nil
		}
		last = errors.Join(last, err)
	}
	return &usageError{fmt.Errorf("--history %s holds no GPU jobs in the form of %s%s", f.history,
		strings.Join(forms, ", "), causeSuffix(last))}
}

func causeSuffix(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func readHistory(path, form string) (history.Report, error) {
	in, err := tail.Open(path)
	if err != nil {
		return history.Report{}, err
	}
	defer func() { _ = in.Close() }()
	parsers := map[string]func(history.Options) history.Parser{"csv": history.NewCSV, "jsonl": history.NewJSONL,
		"sacct": history.NewSacct, "squeue": history.NewSqueue}
	s := history.NewScanner(in, parsers[form](history.Options{}))
	for s.Scan() { // only the counts are wanted
		continue
	}
	return s.Report(), s.Err()
}

func (f *found) printFindings(cmd *cobra.Command) {
	say := func(ok bool, text string) {
		mark := "·"
		if ok {
			mark = "✓"
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "  %s %s\n", mark, text)
	}
	_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "Looking around, read only…")
	if !f.missing {
		say(true, fmt.Sprintf("history   %s: %d GPU jobs (%s), rows that cannot be read: %d", f.history, f.rows,
			f.format, f.broken))
	} else {
		say(false, "history   none named (--history FILE), and none found beside "+f.config)
	}
	switch f.tool {
	case "sacct":
		say(true, "tools     sacct is here: "+sacctLine)
	case "squeue":
		say(true, "tools     squeue is here: "+squeueLine)
	case "kubectl":
		say(true, "tools     kubectl is here; what it prints can be backtested, not followed: kubectl get pods -A "+
			"-o json > pods.json")
	default:
		say(false, "tools     no sacct, squeue or kubectl on the PATH")
	}
	if f.llmKey != "" {
		say(true, "LLM key   "+f.llmKey+" is set: the model is in the file, switched off")
	} else {
		say(false, "LLM key   none set: the agent uses statistics alone, which is enough")
	}
}

// sacctLine makes the text that kind jobs, format sacct reads.
const sacctLine = "sacct --parsable2 --allusers --starttime now-90days -o " +
	"JobID,Submit,Start,End,ElapsedRaw,State,Account,Partition,ReqTRES,AllocTRES,User,JobName > jobs.sacct"

// squeueLine makes the text that kind jobs, format squeue reads; to be run every minute.
const squeueLine = "squeue --array --states=all -O " +
	"'JobArrayID:|,SubmitTime:|,StartTime:|,EndTime:|,State:|,Account:|,Partition:|,NumNodes:|," +
	"tres-alloc:|,tres-per-job:|,tres-per-node:|,Name:|' > queue.new && mv queue.new jobs.squeue"

// writeConfig makes the file, for its owner alone. It replaces one only if told to, or to name the history
// that an earlier init did not find, if nobody has changed the file since.
func (f *found) writeConfig() error {
	text := withSignature(f.configText())
	out, err := os.OpenFile(f.config, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return f.replaceConfig(text)
	}
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	_, err = out.WriteString(text)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}

func (f *found) replaceConfig(text string) error {
	before, err := os.ReadFile(f.config)
	if err != nil {
		return fmt.Errorf("reading the configuration that is there: %w", err)
	}
	waits := isUntouched(string(before)) && strings.Contains(string(before), missingMark)
	if !f.force && (!waits || f.missing) {
		return &usageError{fmt.Errorf("%s exists and is left as it is: choose another with --config, or replace it "+
			"with --force", f.config)}
	}
	if err := statefile.Replace(f.config, []byte(text)); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}

// signature begins the last line of a file that init wrote.
const signature = "# As init wrote it: "

// withSignature adds a line by which init knows its file again while nothing in it is changed.
func withSignature(text string) string {
	return fmt.Sprintf("%s%s%x\n", text, signature, sha256.Sum256([]byte(text)))
}

// isUntouched reports whether a file is as init wrote it.
func isUntouched(text string) bool {
	at := strings.LastIndex(text, signature)
	return at >= 0 && withSignature(text[:at]) == text
}

// missingMark begins the note about a history that is still to be made.
const missingMark = "    # MISSING: "

func (f *found) configText() string {
	note := ""
	if f.missing {
		note = missingMark + "this file does not exist yet, and the agent does not start without it. Make it:\n    #   " +
			f.historyCommand() + "\n"
	}
	pool := "# pool: a100-sim          # id or name of the pool to keep warm; mode auto needs it"
	if f.pool != "" {
		pool = "pool: " + strconv.Quote(f.pool)
	}
	return fmt.Sprintf(template, f.endpoint, pool, strconv.Quote(f.stateDir), strconv.Quote(f.history), f.format, note)
}

// template is the commented configuration. What is commented out shows the
// defaults.
const template = `# forewarm-agent: what it reads, whom it asks, how far it may go.
# Unknown keys are errors. A value env(NAME) is taken from the environment.
api:
  endpoint: %s
  # key: env(FOREWARM_AGENT_KEY)   # forewarm key create NAME --kind agent …
mode: observe              # observe: predicts and keeps score. auto: places, within the caps of its key
%s
every: 1m
state_dir: %s
sources:
  - kind: jobs
    path: %s
    format: %s
%s  # - {kind: log, path: /var/log/train.log}   # only for the model, after redaction
# forecast: {bin: 1h, window: 1h, horizon: 1d, half_life: 0s}
# place: {wait_worth: 32, max_gpus: 8}   # an hour of waiting is worth so many idle GPU-hours
# redact: {patterns: [], words: []}
# llm:                     # your own model; statistics work without
#   base_url: https://api.openai.com/v1
#   model: gpt-5-mini
#   key: env(OPENAI_API_KEY)
#   max_calls_per_day: 200
#   max_tokens_per_day: 1000000
#   max_usd_per_day: 0.20
#   usd_per_million_prompt_tokens: 0.25
#   usd_per_million_answer_tokens: 2.00
`
