package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/egress"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/core/evidence"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// config is the file forewarm-agent.yaml. Every key is used: one that is not
// known here is refused.
type config struct {
	API      apiConfig           `yaml:"api"`
	Mode     agent.Mode          `yaml:"mode"`
	Tenant   string              `yaml:"tenant"`
	Pool     string              `yaml:"pool"`
	Every    strictyaml.Duration `yaml:"every"`
	StateDir string              `yaml:"state_dir"`
	Sources  []sourceConfig      `yaml:"sources"`
	LLM      *llmConfig          `yaml:"llm"`
	Forecast forecastConfig      `yaml:"forecast"`
	Place    placeConfig         `yaml:"place"`
	Redact   redactConfig        `yaml:"redact"`
}

type apiConfig struct {
	Endpoint string     `yaml:"endpoint"`
	Key      obs.Secret `yaml:"key"`
	KeyFile  string     `yaml:"key_file"`
}

type sourceConfig struct {
	Name   string `yaml:"name"`
	Kind   string `yaml:"kind"` // jobs or log
	Path   string `yaml:"path"`
	Format string `yaml:"format"` // of jobs: csv, jsonl, sacct or squeue
	Zone   string `yaml:"zone"`   // of jobs: where their times were written
	// OwnUser, of jobs, is as whom Forewarm submits to the cluster.
	OwnUser string `yaml:"own_user"`
}

type llmConfig struct {
	BaseURL     string              `yaml:"base_url"`
	Model       string              `yaml:"model"`
	Key         obs.Secret          `yaml:"key"`
	TokensField string              `yaml:"tokens_field"`
	Timeout     strictyaml.Duration `yaml:"timeout"`
	Calls       *int64              `yaml:"max_calls_per_day"`
	Tokens      *int64              `yaml:"max_tokens_per_day"`
	USD         float64             `yaml:"max_usd_per_day"`
	PromptUSD   float64             `yaml:"usd_per_million_prompt_tokens"`
	AnswerUSD   float64             `yaml:"usd_per_million_answer_tokens"`
}

type forecastConfig struct {
	Bin      strictyaml.Duration `yaml:"bin"`
	Window   strictyaml.Duration `yaml:"window"`
	Horizon  strictyaml.Duration `yaml:"horizon"`
	HalfLife strictyaml.Duration `yaml:"half_life"`
}

type placeConfig struct {
	WaitWorth float64             `yaml:"wait_worth"`
	Boot      strictyaml.Duration `yaml:"boot"`
	MaxGPUs   int                 `yaml:"max_gpus"`
}

type redactConfig struct {
	Patterns []string `yaml:"patterns"`
	Words    []string `yaml:"words"`
}

// The kinds of source.
const (
	kindJobs = "jobs"
	kindLog  = "log"
)

// file is a configuration and where it came from, for errors that name the line.
type file struct {
	path string
	data []byte
}

func (f file) errorAt(key, message, fix string) error {
	return strictyaml.Wrong(f.path, f.data, key, message, fix)
}

// locateError makes a line of the file of an error that begins with the name of a key
// below group, as the errors of every Validate do.
func (f file) locateError(err error, group string) error {
	key, message, ok := strings.Cut(err.Error(), ": ")
	if !ok || strings.ContainsAny(key, " ") {
		key, message = "", err.Error()
	}
	return f.errorAt(strings.TrimSuffix(group+"."+key, "."), message, "change it")
}

// loadConfig reads and checks a configuration.
func loadConfig(path string, getenv func(string) string) (config, file, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return config{}, file{}, &strictyaml.Error{Path: path, Message: "there is no such file",
			Fix: "forewarm-agent init --config " + path}
	}
	if err != nil {
		return config{}, file{}, fmt.Errorf("reading the configuration: %w", err)
	}
	f := file{path: path, data: data}
	c := config{
		API: apiConfig{Endpoint: "http://127.0.0.1:8787"}, Mode: agent.Observe, Every: strictyaml.Duration(time.Minute),
		StateDir: stateDir(getenv), Place: placeDefaults(),
	}
	if err := strictyaml.Decode(path, data, &c); err != nil {
		return c, f, err
	}
	return c, f, c.validate(f)
}

func stateDir(getenv func(string) string) string {
	base := getenv("XDG_STATE_HOME")
	if base == "" && getenv("HOME") != "" {
		base = filepath.Join(getenv("HOME"), ".local", "state")
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, "forewarm-agent")
}

// ownStateDir is the folder that init writes for a configuration: one of its own, so that no two learn into one state.
func ownStateDir(getenv func(string) string, config string) string {
	base := stateDir(getenv)
	if base == "" {
		return ""
	}
	name := strings.TrimSuffix(filepath.Base(config), filepath.Ext(config))
	return filepath.Join(base, fmt.Sprintf("%s-%.4x", name, sha256.Sum256([]byte(config))))
}

// validate refuses what no component could work with, by its line.
func (c config) validate(f file) error {
	switch {
	case c.Mode != agent.Observe && c.Mode != agent.Auto:
		return f.errorAt("mode", "is neither observe nor auto", "write observe or auto")
	case c.Every.Std() < time.Second || c.Every.Std() > 24*time.Hour:
		return f.errorAt("every", "must be between 1s and 24h", "write 1m")
	case c.StateDir == "":
		return f.errorAt("state_dir", "is missing, and HOME is not set", "name a folder")
	case c.Mode == agent.Auto && c.Pool == "":
		return f.errorAt("pool", "is missing, which mode auto needs", "name a pool: forewarm pools list")
	case c.Mode == agent.Auto && c.API.Key.IsZero() && c.API.KeyFile == "":
		return f.errorAt("api.key", "is missing, which mode auto needs",
			"write key: env(FOREWARM_AGENT_KEY), or key_file")
	case !c.API.Key.IsZero() && c.API.KeyFile != "":
		return f.errorAt("api.key_file", "stands beside key", "keep one of the two")
	case len(c.Sources) == 0:
		return f.errorAt("sources", "is missing: there is nothing to learn from",
			"add one, such as - {kind: jobs, path: jobs.csv, format: csv}")
	}
	if err := egress.Check(c.API.Endpoint); err != nil {
		return f.errorAt("api.endpoint", err.Error(), "write https://forewarm.example.com")
	}
	if err := c.checkSources(f); err != nil {
		return err
	}
	return c.checkNumbers(f)
}

func (c config) checkSources(f file) error {
	names := map[string]bool{}
	for i, s := range c.Sources {
		at := func(key string) string { return fmt.Sprintf("sources.%d.%s", i, key) }
		_, zone := time.LoadLocation(s.Zone)
		switch {
		case s.Kind != kindJobs && s.Kind != kindLog:
			return f.errorAt(at("kind"), "is neither jobs nor log", "write jobs or log")
		case s.Path == "":
			return f.errorAt(at("path"), "is missing", "name the file")
		case !isPattern(s.Path):
			return f.errorAt(at("path"), "is no file name and no pattern such as logs/*.log", "close its bracket")
		case s.Kind == kindLog && s.Format != "":
			return f.errorAt(at("format"), "is only for kind jobs", "remove it")
		case s.Kind == kindLog && s.Zone != "":
			return f.errorAt(at("zone"), "is only for kind jobs", "remove it")
		case s.Kind == kindLog && s.OwnUser != "":
			return f.errorAt(at("own_user"), "is only for kind jobs", "remove it")
		case s.Kind == kindJobs && !slices.Contains([]string{"csv", "jsonl", "sacct", "squeue"}, s.Format):
			return f.errorAt(at("format"), "is none of csv, jsonl, sacct and squeue", "write the form of the file")
		case zone != nil || s.Zone == "Local":
			return f.errorAt(at("zone"), "is no time zone", "write a name such as Europe/Berlin")
		case names[s.displayName()]:
			return f.errorAt(at("name"), "is taken by another source", "give each its own")
		}
		names[s.displayName()] = true
	}
	return nil
}

// isPattern reports whether a path could be used as a pattern.
func isPattern(path string) bool {
	_, err := filepath.Match(path, "")
	return err == nil
}

// historyNames are the sources that statistics learn from: by their name, or else by where their file is.
func (c config) historyNames() (names []string) {
	for _, s := range c.Sources {
		if s.Kind != kindJobs {
			continue
		}
		name := s.Name
		if name == "" {
			name = s.Path
			if path, err := filepath.Abs(s.Path); err == nil {
				name = path
			}
		}
		names = append(names, name)
	}
	return names
}

func (s sourceConfig) displayName() string { return cmp.Or(s.Name, s.Path) }

// checkNumbers has the components check what is theirs.
func (c config) checkNumbers(f file) error {
	if err := c.placeConfig().Validate(); err != nil {
		return f.locateError(err, "place")
	}
	if err := c.predictConfig().WithDefaults().Validate(); err != nil {
		return f.locateError(ofSeries(err), "forecast")
	}
	if c.LLM == nil {
		return nil
	}
	if err := c.LLM.clientConfig().Validate(); err != nil {
		return f.locateError(err, "llm")
	}
	if err := egress.Check(c.LLM.BaseURL); err != nil {
		return f.errorAt("llm.base_url", err.Error(), "write the URL of an OpenAI-compatible API")
	}
	return c.LLM.validate(f)
}

// orUsual is what the file says, or what is usual where it says nothing.
func orUsual(said *int64, usual int64) int64 {
	if said == nil {
		return usual
	}
	return *said
}

const withoutModel = "write how many a day may cost, or leave out llm to ask no model"

func (l llmConfig) validate(f file) error {
	for key, v := range map[string]float64{"max_usd_per_day": l.USD, "usd_per_million_prompt_tokens": l.PromptUSD,
		"usd_per_million_answer_tokens": l.AnswerUSD} {
		if !(v >= 0 && v <= 10_000) {
			return f.errorAt("llm."+key, "must be between 0 and 10000", "write US dollars")
		}
	}
	switch {
	case l.Calls != nil && *l.Calls < 1:
		return f.errorAt("llm.max_calls_per_day", "must be at least 1", withoutModel)
	case l.Tokens != nil && *l.Tokens < 1:
		return f.errorAt("llm.max_tokens_per_day", "must be at least 1", withoutModel)
	case l.USD == 0 && (l.PromptUSD > 0 || l.AnswerUSD > 0):
		return f.errorAt("llm.max_usd_per_day", "is missing for a model that costs something",
			"write how many US dollars a day it may cost")
	default:
		return nil
	}
}

// ofSeries names the key of the file that an error of the statistics is about:
// their period is no choice here, their bin is.
func ofSeries(err error) error {
	text := strings.TrimPrefix(err.Error(), "series: ")
	if rest, ok := strings.CutPrefix(text, "period: "); ok {
		text = "bin: the period of " + rest
	}
	return errors.New(text)
}

// placeDefaults stand where the file says nothing: a zero that it says is no default, and is refused.
func placeDefaults() placeConfig {
	d := place.Config{}.WithDefaults()
	return placeConfig{WaitWorth: d.WaitWorth, MaxGPUs: d.MaxGPUs}
}

func (c config) placeConfig() place.Config {
	return place.Config{WaitWorth: c.Place.WaitWorth, Boot: c.Place.Boot.Std(), MaxGPUs: c.Place.MaxGPUs}
}

func (c config) predictConfig() predict.Config {
	return predict.Config{
		Series: forecast.Config{Bin: c.Forecast.Bin.Std(), HalfLife: c.Forecast.HalfLife.Std()},
		Window: c.Forecast.Window.Std(), Horizon: c.Forecast.Horizon.Std(), MaxGPUs: c.placeConfig().MaxGPUs,
		Terms: evidence.Terms{WaitPrice: c.placeConfig().WaitWorth, GPUPrice: 1, Boot: c.placeConfig().Boot},
	}
}

func (l llmConfig) clientConfig() llm.Config {
	return llm.Config{BaseURL: l.BaseURL, Model: l.Model, Key: l.Key, TokensField: l.TokensField}.WithDefaults()
}

// budgetConfig is what a day may cost: 200 questions and a million tokens, unless the
// file says otherwise.
func (l llmConfig) budgetConfig() llm.BudgetConfig {
	return llm.BudgetConfig{
		Caps:  llm.Caps{Calls: orUsual(l.Calls, 200), Tokens: orUsual(l.Tokens, 1_000_000), Cost: toMicroUSD(l.USD)},
		Price: llm.Price{Prompt: toMicroUSD(l.PromptUSD), Completion: toMicroUSD(l.AnswerUSD)},
	}
}

func toMicroUSD(v float64) money.MicroUSD { return money.MicroUSD(math.Round(v * float64(money.USD))) }
