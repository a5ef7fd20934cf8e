package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source/tail"
)

// found is what init saw, and what it was told.
type found struct {
	history, format  string
	rows, broken     int64
	sacct            bool
	llmKey           string // name of the environment variable
	endpoint, pool   string
	config, stateDir string
}

func initCommand(o outside) *cobra.Command {
	var f found
	c := &cobra.Command{
		Use: "init", Short: "Look around, read only, and write one configuration file", Args: cobra.NoArgs,
		Example: "  forewarm-agent init --history jobs.csv --pool a100-sim",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.look(o.getenv); err != nil {
				return err
			}
			f.report(cmd)
			if err := f.write(); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "✓ %s · nothing was sent\nNext:  forewarm-agent run --dry-run --config %s\n", f.config, f.config)
			return err
		},
	}
	c.Flags().StringVar(&f.config, "config", defaultConfig, "the file to write")
	c.Flags().StringVar(&f.history, "history", "", "job history to learn from: CSV, JSONL or the text of sacct")
	c.Flags().StringVar(&f.endpoint, "endpoint", "http://127.0.0.1:8787", "address of the control plane")
	c.Flags().StringVar(&f.pool, "pool", "", "id or name of the pool to keep warm")
	return c
}

// look reads and changes nothing.
func (f *found) look(getenv func(string) string) error {
	f.stateDir = stateDir(getenv)
	_, err := exec.LookPath("sacct")
	f.sacct = err == nil
	if getenv("OPENAI_API_KEY") != "" {
		f.llmKey = "OPENAI_API_KEY"
	}
	if f.history == "" {
		return nil
	}
	if f.history, err = filepath.Abs(f.history); err != nil {
		return fmt.Errorf("finding the history: %w", err)
	}
	return f.try()
}

// try reads the history in the form that its name says, else in the first form
// that gives records.
func (f *found) try() error {
	forms := []string{"csv", "jsonl", "sacct"}
	if ext := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(f.history, ".gz")), "."); ext == "csv" || ext == "jsonl" {
		forms = []string{ext}
	}
	var last error
	for _, form := range forms {
		report, err := read(f.history, form)
		if err == nil && report.Kept > 0 {
			f.format, f.rows, f.broken = form, report.Kept, report.Broken
			return nil
		}
		last = errors.Join(last, err)
	}
	return &usageError{fmt.Errorf("--history %s holds no GPU jobs in the form of %s%s", f.history, strings.Join(forms, ", "), because(last))}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func read(path, form string) (history.Report, error) {
	in, err := tail.Open(path)
	if err != nil {
		return history.Report{}, err
	}
	defer func() { _ = in.Close() }()
	parsers := map[string]func(history.Options) history.Parser{"csv": history.NewCSV, "jsonl": history.NewJSONL, "sacct": history.NewSacct}
	s := history.NewScanner(in, parsers[form](history.Options{}))
	for s.Scan() { // only the counts are wanted
		continue
	}
	return s.Report(), s.Err()
}

func (f *found) report(cmd *cobra.Command) {
	say := func(ok bool, text string) {
		mark := "·"
		if ok {
			mark = "✓"
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "  %s %s\n", mark, text)
	}
	_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "Looking around, read only…")
	if f.history != "" {
		say(true, fmt.Sprintf("history   %s: %d GPU jobs (%s), rows that cannot be read: %d", f.history, f.rows, f.format, f.broken))
	} else {
		say(false, "history   none named: --history FILE")
	}
	if f.sacct {
		say(true, "Slurm     sacct is here: "+sacctLine)
	} else {
		say(false, "Slurm     no sacct on the PATH")
	}
	if f.llmKey != "" {
		say(true, "LLM key   "+f.llmKey+" is set: the model is in the file, switched off")
	} else {
		say(false, "LLM key   none set: statistics alone, which is enough")
	}
}

// sacctLine makes the text that kind jobs, format sacct reads.
const sacctLine = "sacct --parsable2 --allusers --starttime now-90days -o JobID,Submit,Start,End,ElapsedRaw,State,Account,Partition,ReqTRES,AllocTRES,JobName > jobs.sacct"

// write makes the file, for its owner alone, and never replaces one.
func (f *found) write() error {
	out, err := os.OpenFile(f.config, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &usageError{fmt.Errorf("%s exists and is left as it is: choose another with --config", f.config)}
	}
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	_, err = out.WriteString(f.text())
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}

func (f *found) text() string {
	path, format := f.history, f.format
	if path == "" {
		path, format = "jobs.csv", "csv"
		if f.sacct {
			path, format = "jobs.sacct", "sacct"
		}
	}
	pool := "# pool: a100-sim          # id or name of the pool to keep warm; mode auto needs it"
	if f.pool != "" {
		pool = "pool: " + strconv.Quote(f.pool)
	}
	return fmt.Sprintf(template, f.endpoint, pool, strconv.Quote(f.stateDir), strconv.Quote(path), format)
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
  # - {kind: log, path: /var/log/train.log}   # only for the model, after redaction
# forecast: {bin: 1h, window: 1h, horizon: 1d, half_life: 0s}
# place: {wait_worth: 32, boot: 5m, max_gpus: 8}   # an hour of waiting is worth so many idle GPU-hours
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
