package strictyaml_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

type file struct {
	Name  string              `yaml:"name"`
	Key   obs.Secret          `yaml:"key"`
	Every strictyaml.Duration `yaml:"every"`
	Place struct {
		MaxGPUs int     `yaml:"max_gpus"`
		Worth   float64 `yaml:"wait_worth"`
		Dry     bool    `yaml:"dry"`
	} `yaml:"place"`
	Sources []struct {
		Kind string `yaml:"kind"`
	} `yaml:"sources"`
	Labels map[string]string `yaml:"labels"`
}

func TestDecode(t *testing.T) {
	t.Setenv("FW_TEST_KEY", "12345")
	in := "name: lab # a comment\nkey: env(FW_TEST_KEY)\nevery: 1d12h\nplace: {max_gpus: 4, wait_worth: 2.5, dry: " +
		"true}\nsources:\n  - kind: jobs\n  - kind: log\nlabels: {a: b}\n"
	got := file{Name: "default"}
	require.NoError(t, strictyaml.Decode("a.yaml", []byte(in), &got))
	require.Equal(t, "lab", got.Name)
	require.Equal(t, "12345", got.Key.Reveal())
	require.Equal(t, 36*time.Hour, got.Every.Std())
	require.Equal(t, 4, got.Place.MaxGPUs)
	require.InDelta(t, 2.5, got.Place.Worth, 0)
	require.True(t, got.Place.Dry)
	require.Len(t, got.Sources, 2)
	require.Equal(t, map[string]string{"a": "b"}, got.Labels)
}

func TestDecodeKeepsDefaults(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "\n# nothing\n", "---\n", "null\n", "every: 2h\n"} {
		got := file{Name: "default"}
		require.NoError(t, strictyaml.Decode("a.yaml", []byte(in), &got), "%q", in)
		require.Equal(t, "default", got.Name)
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Setenv("FW_TEST_SECRET", "hunter2")
	for name, c := range map[string]struct{ in, want string }{
		"misspelt":       {"name: x\nplase:\n  max_gpus: 1\n", "a.yaml:2: there is no key plase\n  fix: write place"},
		"misspelt below": {"place:\n  max_gpu: 1\n", "a.yaml:2: there is no key place.max_gpu\n  fix: write max_gpus"},
		"in a list": {"sources:\n  - kind: log\n  - kin: log\n",
			"a.yaml:3: there is no key sources[1].kin\n  fix: write kind"},
		"far off": {"xyzzy: 1\n",
			"a.yaml:1: there is no key xyzzy\n  fix: remove it; known here: every, key, labels, name, place, sources"},
		"twice": {"name: a\nevery: 1h\nname: b\n",
			"a.yaml:3: name is set here and on line 1\n  fix: remove one of the two"},
		"not a number": {"place:\n  max_gpus: many\n",
			"a.yaml:2: place.max_gpus is not a whole number\n  fix: write a whole number"},
		"half a gpu": {"place:\n  max_gpus: 1.5\n",
			"a.yaml:2: place.max_gpus is not a whole number\n  fix: write a whole number"},
		"not a flag": {"place:\n  dry: perhaps\n",
			"a.yaml:2: place.dry is not true or false\n  fix: write true or false"},
		"not a list": {"sources: jobs\n",
			"a.yaml:1: sources is not a list (lines that begin with -)\n  fix: write a list (lines that begin with -)"},
		"not a group": {"name: a\nplace: 3\n",
			"a.yaml:2: place is not a group of keys\n  fix: write a group of keys"},
		"group for text": {"name:\n  a: 1\n", "a.yaml:2: name is not text\n  fix: write text"},
		"no value":       {"name:\n", "a.yaml:1: name has no value\n  fix: write one, or remove the line"},
		"not finite": {"place:\n  wait_worth: .inf\n",
			"a.yaml:2: place.wait_worth is not a number\n  fix: write a number"},
		"huge": {"place:\n  max_gpus: 99999999999999999999\n",
			"a.yaml:2: place.max_gpus is not a whole number\n  fix: write a whole number"},
		"secret group": {"key: {a: b}\n", "a.yaml:1: key is not text\n  fix: write text"},
		"negative": {"\nevery: -5m\n",
			"a.yaml:2: every is not a duration\n  fix: write a number with its unit, such as 90m, 2h or 1d"},
		"in flow": {"{every: banana}\n",
			"a.yaml:1: every is not a duration\n  fix: write a number with its unit, such as 90m, 2h or 1d"},
		"no unit": {"every: 90\n",
			"a.yaml:1: every is not a duration\n  fix: write a number with its unit, such as 90m, 2h or 1d"},
		"not set": {"key: env(FW_TEST_NOT_SET)\n",
			"a.yaml:1: the environment variable FW_TEST_NOT_SET is not set\n  fix: export FW_TEST_NOT_SET=… before the " +
				"start, or write the value here"},
		"secret number": {"place:\n  max_gpus: env(FW_TEST_SECRET)\n",
			"a.yaml:2: place.max_gpus is not a whole number\n  fix: write a whole number"},
		"alias": {"name: &x a\nlabels: {b: *x}\n",
			"a.yaml:1: anchors and aliases are not read here\n  fix: write the value out"},
		"two documents": {"name: a\n---\nname: b\n",
			"a.yaml:2: there is more than one document\n  fix: remove the line --- and what follows"},
		"top is a list": {"- a\n", "a.yaml:1: the file is not a group of keys\n  fix: write a group of keys"},
	} {
		t.Run(name, func(t *testing.T) {
			var got file
			err := strictyaml.Decode("a.yaml", []byte(c.in), &got)
			require.EqualError(t, err, c.want)
			var e *strictyaml.Error
			require.ErrorAs(t, err, &e)
		})
	}
}

func TestSyntaxErrorHasALine(t *testing.T) {
	t.Parallel()
	var e *strictyaml.Error
	require.ErrorAs(t, strictyaml.Decode("a.yaml", []byte("name: a\n\tevery: 1h\n"), &file{}), &e)
	require.Positive(t, e.Line)
	require.NotEmpty(t, e.Fix)
}

func TestOnlyWholeValuesComeFromTheEnvironment(t *testing.T) {
	t.Setenv("FW_TEST_SECRET", "hunter2")
	var got file
	require.NoError(t, strictyaml.Decode("a.yaml",
		[]byte("name: a $FW_TEST_SECRET ${FW_TEST_SECRET} env(FW_TEST_SECRET) b\n"), &got))
	require.Equal(t, "a $FW_TEST_SECRET ${FW_TEST_SECRET} env(FW_TEST_SECRET) b", got.Name)
}

func TestWrong(t *testing.T) {
	t.Parallel()
	data := []byte("name: x\nsources:\n  - kind: jobs\n  - kind: nope\n")
	require.EqualError(t, strictyaml.Wrong("a.yaml", data, "sources.1.kind", "is neither jobs nor log",
		"write jobs or log"),
		"a.yaml:4: sources.1.kind: is neither jobs nor log\n  fix: write jobs or log")
	require.Equal(t, 3, strictyaml.Wrong("a.yaml", data, "sources.0.path", "is missing", "add it").Line)
	require.Equal(t, 1, strictyaml.Wrong("a.yaml", data, "api.endpoint", "is missing", "add it").Line)
	require.Equal(t, 0, strictyaml.Wrong("a.yaml", nil, "api.endpoint", "is missing", "add it").Line)
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "2h": 2 * time.Hour, "1d": 24 * time.Hour, "1d12h30m": 36*time.Hour + 30*time.Minute,
		"0": 0, "1.5h": 90 * time.Minute,
	} {
		got, err := strictyaml.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "90", "-1h", "+1h", "1d-1h", "1d+1h", "d", "1w", "NaN", "inf", "999999d", "h",
		"1d1"} {
		_, err := strictyaml.ParseDuration(text)
		require.ErrorIs(t, err, strictyaml.ErrDuration, text)
	}
}

// Whatever a file holds, the answer is nil or an *Error, never a panic.
func TestDecodeNeverPanics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"name: a", "place:", "  max_gpus: 1", "  - kind: x", "- x", "sources: [",
			"}", "&a", "*a", "<<: *a", "---", "? x", "every: 1d", "!!binary x", "\t", "labels: {a: {b: c}}"})
		var in string
		for range rapid.IntRange(0, 8).Draw(t, "lines") {
			in += line.Draw(t, "line") + "\n"
		}
		in += rapid.StringN(0, 10, -1).Draw(t, "tail")
		if err := strictyaml.Decode("a.yaml", []byte(in), &file{}); err != nil {
			var e *strictyaml.Error
			if !errors.As(err, &e) || e.Path != "a.yaml" || e.Message == "" || e.Fix == "" {
				t.Fatalf("%q: %v", in, err)
			}
		}
	})
}
