package daemon

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/provisioners/builtin"
)

// root is the repository's, seen from here.
const root = "../../../../"

// example is a piece of YAML that people copy.
type example struct {
	name string // the file, and the line of a block in it
	text string
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// readExamples are all files and blocks of YAML in what people read and copy from.
func readExamples(t *testing.T) []example {
	t.Helper()
	var all []example
	take := func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		kind := filepath.Ext(path)
		if kind != ".md" && kind != ".yaml" && kind != ".yml" {
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // our own files
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root)
		if kind != ".md" {
			all = append(all, example{name, string(text)})
			return nil
		}
		for _, at := range yamlBlock.FindAllSubmatchIndex(text, -1) {
			line := 1 + strings.Count(string(text[:at[2]]), "\n")
			all = append(all, example{name + ":" + strconv.Itoa(line), string(text[at[2]:at[3]])})
		}
		return nil
	}
	for _, folder := range []string{"docs", "deploy"} {
		require.NoError(t, filepath.WalkDir(root+folder, take))
	}
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "bench/README.md", "provisioners/README.md"} {
		require.NoError(t, take(root+page, nil, nil))
	}
	return all
}

// otherwise names who runs the YAML that is no configuration of the control
// plane, by the file or, where a file has several, by a key that it begins with.
var otherwise = map[string]string{
	"deploy/forewarm-agent.example.yaml": "cmd/forewarm-agent",
	"deploy/forewarm-node.example.yaml":  "cmd/forewarm-node",
	"deploy/compose.yaml":                "TestComposeFile",
	"deploy/prometheus/rules.yaml":       "cmd/forewarm: TestRulesOfPrometheus",
	"apiVersion":                         "provisioners/kubernetes: its docs_test.go, and make test/kubernetes",
	"p5.48xlarge":                        "provisioners/aws: config_test.go",
}

// Every YAML that people copy is a configuration that loads, its provisioners
// are made and its pools stored; or it is named above together with the test that
// runs it.
func TestEveryExampleIsRun(t *testing.T) {
	for _, name := range []string{"FOREWARM_DATABASE", "FOREWARM_REDIS", "FOREWARM_PEPPER"} {
		t.Setenv(name, "")
	}
	ran := 0
	for _, e := range readExamples(t) {
		var keys map[string]yaml.Node
		require.NoError(t, yaml.Unmarshal([]byte(firstDocument(e.text)), &keys), e.name)
		if slices.ContainsFunc(slices.Collect(maps.Keys(keys)), func(k string) bool { return otherwise[k] != "" }) ||
			otherwise[e.name] != "" {
			continue
		}
		t.Run(e.name, func(t *testing.T) { runExample(t, e.text) })
		ran++
	}
	require.GreaterOrEqual(t, ran, 14, "examples were found")
}

// firstDocument is what stands before the first separator.
func firstDocument(text string) string {
	before, _, _ := strings.Cut(text, "\n---\n")
	return before
}

// needsOthers are kinds whose making or asking needs files or programs of the
// operator's: their own tests make these, and the example's pools are held
// against its offers there.
var needsOthers = []string{"ssh", "exec", "slurm", "aws", "gcp", "kubernetes"}

func runExample(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "forewarm.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "/var/lib/forewarm", dir)), 0o600))
	cfg, err := loadConfig(path)
	require.NoError(t, err)
	cfg.DataDir = filepath.Join(dir, "data")
	for _, p := range cfg.Provisioners {
		if slices.Contains(needsOthers, p.Kind) {
			return
		}
		require.Contains(t, builtin.Kinds, p.Kind)
	}
	a, err := newApp(t.Context(), cfg, "test")
	require.NoError(t, err)
	defer func() { require.NoError(t, a.store.Close()) }()
	_, _, err = a.prepareInstallation(t.Context())
	require.NoError(t, err)
}

// commentedKey is a key, or an item of a list, that an example shows as a
// comment.
var commentedKey = regexp.MustCompile(`(?m)^( *)# ( *(?:- )?([a-z_]+):(?: .*)?)$`)

// adapterKeys are those that the example shows as comments and Config does not
// know.
var adapterKeys = []string{"config", "name", "region", "price_per_hour", "model", "simulate", "simulated_memory_mib",
	"host_id",
	"state_file", "faults", "seed", "suspend_time", "offers", "work"}

// What the example of the whole file shows as comments works, too, and it has
// every key there is.
func TestTheWholeExampleIsComplete(t *testing.T) {
	text, err := os.ReadFile(root + "deploy/forewarm.example.yaml")
	require.NoError(t, err)
	t.Setenv("FOREWARM_DATABASE", "sqlite://"+filepath.Join(t.TempDir(), "example.db"))
	t.Setenv("FOREWARM_REDIS", "redis://127.0.0.1:1/0")
	t.Setenv("FOREWARM_PEPPER", "1:"+strings.Repeat("cd", 32))
	var keys []string
	for _, key := range leafKeys(reflect.TypeFor[Config](), "") {
		keys = append(keys, key[strings.LastIndex(key, ".")+1:])
	}
	whole := commentedKey.ReplaceAllStringFunc(string(text), func(line string) string {
		found := commentedKey.FindStringSubmatch(line)
		if !slices.Contains(keys, found[3]) && !slices.Contains(adapterKeys, found[3]) {
			return line // words of a comment
		}
		return found[1] + found[2]
	})
	handed := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(handed, nodeAMD64), nil, 0o600))
	whole = strings.Replace(whole, "download_dir: /usr/local/lib/forewarm", "download_dir: "+handed, 1)
	runExample(t, whole)
	for _, last := range keys {
		require.Regexp(t, `(?m)^\s*(- )?(\{.*)?`+last+`:|[{,] ?`+last+`:`, whole,
			"deploy/forewarm.example.yaml lacks %s", last)
	}
}

// What compose.yaml names is there: the variables in the example of its .env, the
// files that it mounts, and the commands.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "deploy/compose.yaml")
	require.NoError(t, err)
	env, err := os.ReadFile(root + "deploy/compose.env.example")
	require.NoError(t, err)
	variables := regexp.MustCompile(`\$\{([A-Z_]+):\?`).FindAllSubmatch(text, -1)
	require.NotEmpty(t, variables)
	for _, v := range variables {
		require.Regexp(t, `(?m)^`+string(v[1])+`=`, string(env))
	}
	var file struct {
		Services map[string]struct {
			Command yaml.Node
			Build   struct{ Context, Dockerfile string }
			Volumes []string
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	known := map[string]bool{}
	for _, cmd := range Commands("test", nil) {
		known[cmd.Name()] = true
	}
	ours := 0
	for name, service := range file.Services {
		for _, volume := range service.Volumes {
			if from, _, _ := strings.Cut(volume, ":"); strings.HasPrefix(from, "./") {
				require.FileExists(t, root+"deploy/"+from, name)
			}
		}
		if service.Build.Dockerfile == "" {
			continue
		}
		require.FileExists(t, filepath.Join(root, "deploy", service.Build.Context, service.Build.Dockerfile))
		var command []string
		require.NoError(t, service.Command.Decode(&command))
		require.True(t, known[command[0]], "%s runs %v", name, command)
		ours++
	}
	require.Equal(t, 3, ours, "migrate, server and worker")
}

var execStart = regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/forewarm ([a-z]+) --config (\S+)$`)

// The units start commands that there are, on the file that the manual installs.
func TestUnits(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob(root + "deploy/systemd/forewarm-[sw]*.service")
	require.NoError(t, err)
	require.Len(t, units, 3)
	manual, err := os.ReadFile(root + "deploy/README.md")
	require.NoError(t, err)
	for _, unit := range units {
		text, err := os.ReadFile(unit) //nolint:gosec // our own files
		require.NoError(t, err)
		found := execStart.FindSubmatch(text)
		require.NotNil(t, found, unit)
		require.True(t, slices.ContainsFunc(Commands("test", nil),
			func(c *cobra.Command) bool { return c.Name() == string(found[1]) }), unit)
		require.Contains(t, string(manual), string(found[2]))
		require.Contains(t, string(manual), filepath.Base(unit))
	}
}
