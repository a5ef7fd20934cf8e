package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// used says for every key of the configuration what it decides: a file that sets
// it, and the proof that it arrived where it is used.
var used = map[string]struct {
	yaml  string
	check func(t *testing.T, c config)
}{
	"api.endpoint": {"api: {endpoint: https://fw.example.com}",
		func(t *testing.T, c config) { require.Equal(t, "https://fw.example.com", c.API.Endpoint) }},
	"api.key":      {"api: {key: abc}", func(t *testing.T, c config) { require.Equal(t, "abc", c.API.Key.Reveal()) }},
	"api.key_file": {"api: {key_file: k}", func(t *testing.T, c config) { require.Equal(t, "k", c.API.KeyFile) }},
	"mode": {"mode: auto\napi: {key: abc}\npool: p",
		func(t *testing.T, c config) { require.Equal(t, agent.Auto, c.Mode) }},
	"tenant": {"tenant: nlp", func(t *testing.T, c config) { require.Equal(t, "nlp", c.Tenant) }},
	"pool":   {"pool: a100", func(t *testing.T, c config) { require.Equal(t, "a100", c.Pool) }},
	"every":  {"every: 30s", func(t *testing.T, c config) { require.Equal(t, 30*time.Second, c.Every.Std()) }},
	"state_dir": {"state_dir: /s", func(t *testing.T,
		c config) {
		require.Equal(t, "/s/salt", composer{cfg: c}.statePath(saltFile))
	}},
	"sources.name": {"sources: [{name: n, kind: log, path: p}]",
		func(t *testing.T, c config) { require.Equal(t, "n", c.Sources[0].displayName()) }},
	"sources.kind": {"sources: [{kind: log, path: p}]",
		func(t *testing.T, c config) { require.Equal(t, kindLog, c.Sources[0].Kind) }},
	"sources.path": {"sources: [{kind: log, path: p}]",
		func(t *testing.T, c config) { require.Equal(t, "p", c.Sources[0].Path) }},
	"sources.format": {"sources: [{kind: jobs, path: p, format: sacct}]", func(t *testing.T, c config) {
		require.Equal(t, "sacct", c.Sources[0].Format)
	}},
	"sources.zone": {"sources: [{kind: jobs, path: p, format: csv, zone: Europe/Berlin}]",
		func(t *testing.T, c config) {
			require.Equal(t, "Europe/Berlin", c.Sources[0].Zone)
		}},
	"sources.own_user": {"sources: [{kind: jobs, path: p, format: csv, own_user: gpu-ops}]",
		func(t *testing.T, c config) { require.Equal(t, "gpu-ops", c.Sources[0].OwnUser) }},
	"llm.base_url": {modelConfig(""), func(t *testing.T,
		c config) {
		require.Equal(t, "http://localhost:1/v1", c.LLM.clientConfig().BaseURL)
	}},
	"llm.model": {modelConfig(""), func(t *testing.T, c config) { require.Equal(t, "m", c.LLM.clientConfig().Model) }},
	"llm.key": {modelConfig("key: k"), func(t *testing.T,
		c config) {
		require.Equal(t, "k", c.LLM.clientConfig().Key.Reveal())
	}},
	"llm.tokens_field": {modelConfig("tokens_field: max_completion_tokens"),
		func(t *testing.T, c config) {
			require.Equal(t, "max_completion_tokens", c.LLM.clientConfig().TokensField)
		}},
	"llm.timeout": {modelConfig("timeout: 5s"), func(t *testing.T,
		c config) {
		require.Equal(t, 5*time.Second, c.LLM.Timeout.Std())
	}},
	"llm.max_calls_per_day": {modelConfig("max_calls_per_day: 7"), func(t *testing.T, c config) {
		require.EqualValues(t, 7, c.LLM.budgetConfig().Caps.Calls)
	}},
	"llm.max_tokens_per_day": {modelConfig("max_tokens_per_day: 7"), func(t *testing.T, c config) {
		require.EqualValues(t, 7, c.LLM.budgetConfig().Caps.Tokens)
	}},
	"llm.max_usd_per_day": {modelConfig("max_usd_per_day: 0.2"), func(t *testing.T, c config) {
		require.Equal(t, 200_000*money.MicroUSD(1), c.LLM.budgetConfig().Caps.Cost)
	}},
	"llm.usd_per_million_prompt_tokens": {modelConfig("usd_per_million_prompt_tokens: 0.25, max_usd_per_day: 1"),
		func(t *testing.T, c config) {
			require.Equal(t, money.USD/4, c.LLM.budgetConfig().Price.Prompt)
		}},
	"llm.usd_per_million_answer_tokens": {modelConfig("usd_per_million_answer_tokens: 2, max_usd_per_day: 1"),
		func(t *testing.T, c config) {
			require.Equal(t, 2*money.USD, c.LLM.budgetConfig().Price.Completion)
		}},
	"forecast.bin": {"forecast: {bin: 30m}",
		func(t *testing.T, c config) { require.Equal(t, 30*time.Minute, c.predictConfig().Series.Bin) }},
	"forecast.window": {"forecast: {window: 20m}",
		func(t *testing.T, c config) { require.Equal(t, 20*time.Minute, c.predictConfig().Window) }},
	"forecast.horizon": {"forecast: {horizon: 3h}",
		func(t *testing.T, c config) { require.Equal(t, 3*time.Hour, c.predictConfig().Horizon) }},
	"forecast.half_life": {"forecast: {half_life: 30d}",
		func(t *testing.T, c config) { require.Equal(t, 720*time.Hour, c.predictConfig().Series.HalfLife) }},
	"place.wait_worth": {"place: {wait_worth: 3}",
		func(t *testing.T, c config) { require.InDelta(t, 3, c.placeConfig().WaitWorth, 0) }},
	"place.boot": {"place: {boot: 2m}", func(t *testing.T,
		c config) {
		require.Equal(t, 2*time.Minute, c.placeConfig().Boot)
	}},
	"place.max_gpus": {"place: {max_gpus: 3}", func(t *testing.T, c config) {
		require.Equal(t, 3, c.placeConfig().MaxGPUs)
		require.Equal(t, 3, c.predictConfig().MaxGPUs)
	}},
	"redact.patterns": {"redact: {patterns: [abc]}",
		func(t *testing.T, c config) { require.Equal(t, []string{"abc"}, c.Redact.Patterns) }},
	"redact.words": {"redact: {words: [abc]}", func(t *testing.T,
		c config) {
		require.Equal(t, []string{"abc"}, c.Redact.Words)
	}},
}

func modelConfig(more string) string {
	return "llm: {base_url: 'http://localhost:1/v1', model: m, " + more + "}"
}

// keysOf lists the keys of a configuration struct, dotted.
func keysOf(t reflect.Type, at string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[obs.Secret]() {
		return []string{at}
	}
	var keys []string
	for f := range t.Fields() {
		keys = append(keys, keysOf(f.Type, strings.TrimPrefix(at+"."+f.Tag.Get("yaml"), "."))...)
	}
	return keys
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forewarm-agent.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// wholeConfig adds what every configuration needs.
func wholeConfig(text string) string {
	if !strings.Contains(text, "sources:") {
		text += "\nsources: [{kind: jobs, path: jobs.csv, format: csv}]"
	}
	return text + "\n"
}

func nothingSet(string) string { return "/nowhere" }

func TestEveryKeyIsUsed(t *testing.T) {
	t.Parallel()
	keys := keysOf(reflect.TypeFor[config](), "")
	for key := range used {
		require.Contains(t, keys, key, "this key does not exist")
	}
	for _, key := range keys {
		u, ok := used[key]
		require.True(t, ok, "key %s is read and nobody knows what for", key)
		c, _, err := loadConfig(writeConfig(t, wholeConfig(u.yaml)), nothingSet)
		require.NoError(t, err, key)
		u.check(t, c)
	}
}

// A key that is one letter off is never a silent default, wherever it stands.
func TestMisspeltKeysAreRefused(t *testing.T) {
	t.Parallel()
	for key, u := range used {
		last := key[strings.LastIndex(key, ".")+1:]
		wrong := strings.Replace(wholeConfig(u.yaml), last+":", last+"z:", 1)
		require.NotEqual(t, wholeConfig(u.yaml), wrong, key)
		_, _, err := loadConfig(writeConfig(t, wrong), nothingSet)
		var e *strictyaml.Error
		require.ErrorAs(t, err, &e, key)
		require.Positive(t, e.Line, key)
		require.Equal(t, "write "+last, e.Fix, key)
	}
}

func TestWrongValuesNameTheLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"mode: suggest":                                                "1: mode: is neither observe nor auto",
		"\nevery: 1ms":                                                 "2: every: must be between",
		"mode: auto":                                                   "1: pool: is missing, which mode auto needs",
		"mode: auto\npool: p":                                          "1: api.key: is missing, which mode auto needs",
		"api:\n  key: a\n  key_file: b":                                "3: api.key_file: stands beside key",
		"api:\n  endpoint: nowhere":                                    "2: api.endpoint: must be like https://host",
		"sources: []":                                                  "1: sources: is missing",
		"sources:\n  - kind: mail\n    path: p":                        "2: sources.0.kind: is neither jobs nor log",
		"sources:\n  - kind: log":                                      "2: sources.0.path: is missing",
		"sources:\n  - kind: jobs\n    path: p":                        "2: sources.0.format: is none of csv",
		"sources: [{kind: log, path: p, format: csv}]":                 "1: sources.0.format: is only for kind jobs",
		"sources: [{kind: log, path: p, own_user: x}]":                 "1: sources.0.own_user: is only for kind jobs",
		"sources: [{kind: log, path: p, zone: UTC}]":                   "1: sources.0.zone: is only for kind jobs",
		"sources:\n  - {kind: jobs, path: p, format: csv, zone: Mars}": "2: sources.0.zone: is no time zone",
		"sources:\n  - {kind: log, path: p}\n  - {kind: log, path: p}": "3: sources.1.name: is taken",
		"place:\n  wait_worth: -1":                                     "2: place.wait_worth: -1 is not above 0",
		"place:\n  wait_worth: 0":                                      "2: place.wait_worth: 0 is not above 0",
		"place:\n  max_gpus: 0":                                        "2: place.max_gpus: 0 is not between 1 and 4096",
		"place:\n  max_gpus: 99999999":                                 "2: place.max_gpus: 99999999 is not between",
		"place:\n  boot: 48h":                                          "2: place.boot: 48h0m0s is not between",
		"forecast:\n  bin: 11m":                                        "2: forecast.",
		"forecast:\n  horizon: 1m":                                     "2: forecast.horizon:",
		"llm:\n  model: m":                                             "1: llm.base_url: want http",
		"llm:\n  base_url: http://example.com/v1\n  model: m":          "2: llm.base_url: must be https unless",
		"llm:\n  base_url: http://localhost/v1":                        "1: llm.model: missing",
		modelConfig("max_calls_per_day: -1"):                           "1: llm.max_calls_per_day: must be at least 1",
		modelConfig("max_calls_per_day: 0"):                            "1: llm.max_calls_per_day: must be at least 1",
		modelConfig("max_tokens_per_day: -1"): "1: llm.max_tokens_per_day: must be at " +
			"least 1",
		modelConfig("max_usd_per_day: -1"):              "1: llm.max_usd_per_day: must be between",
		modelConfig("usd_per_million_prompt_tokens: 1"): "1: llm.max_usd_per_day: is missing",
		"tenant: a\napi: {key: env(FOREWARM_TEST_NOT_SET)}": "2: the environment variable " +
			"FOREWARM_TEST_NOT_SET is not set",
		"place:\n  max_gpus: many": "2: place.max_gpus is not a whole number",
		"every: -5m":               "1: every is not a duration",
	} {
		path := writeConfig(t, wholeConfig(text))
		_, _, err := loadConfig(path, nothingSet)
		require.ErrorContains(t, err, path+":"+want, text)
		require.ErrorContains(t, err, "\n  fix: ", text)
	}
}

func TestBadPatternsNameTheLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"redact:\n  patterns:\n    - a\n    - '('": ":4: redact.patterns.1: pattern 2",
		"redact:\n  words:\n    - ab":              ":3: redact.words.0: word 1",
	} {
		w := newHome(t)
		w.writeConfig(text + "\n")
		_, errs, code := w.runCommand(t.Context(), "run", "--once")
		require.Equal(t, exitUsage, code, errs)
		require.Contains(t, errs, want)
	}
}

func TestKeysOfFindsEverything(t *testing.T) {
	t.Parallel()
	keys := keysOf(reflect.TypeFor[config](), "")
	require.True(t, slices.Contains(keys, "sources.zone") && slices.Contains(keys, "llm.key") &&
		slices.Contains(keys, "every"), fmt.Sprint(keys))
}
