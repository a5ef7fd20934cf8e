package daemon

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// trials name the test that loads or runs each file that people install, as the test's file and name.
var trials = map[string]string{
	"Dockerfile":              "cmd/forewarm/internal/daemon/deployed_test.go TestDockerfile",
	"Dockerfile.dockerignore": "cmd/forewarm/internal/daemon/deployed_test.go TestDockerfile",
	"compose.env.example":     "cmd/forewarm/internal/daemon/examples_test.go TestComposeFile",
	// Its containers' commands run as processes in files behind the tag services.
	"compose.forewarm.yaml":                   "cmd/forewarm/compose_services_test.go TestTheConfigurationOfCompose",
	"compose.yaml":                            "cmd/forewarm/internal/daemon/examples_test.go TestComposeFile",
	"exec/machines.py":                        "provisioners/exec/example_test.go TestShippedExample",
	"forewarm-agent.example.yaml":             "cmd/forewarm-agent/docs_test.go TestExampleConfigurationsLoad",
	"forewarm-node.example.yaml":              "cmd/forewarm-node/main_test.go TestTheExampleLoads",
	"forewarm.example.yaml":                   "cmd/forewarm/examples_test.go TestTheExampleConfigurationStarts",
	"kubernetes/placeholders.yaml":            "provisioners/kubernetes/docs_test.go TestTheExampleOfWork",
	"kubernetes/rbac-cordon.yaml":             "provisioners/kubernetes/docs_test.go TestRights",
	"kubernetes/rbac-observe.yaml":            "provisioners/kubernetes/docs_test.go TestRightsOfObserving",
	"kubernetes/rbac.yaml":                    "provisioners/kubernetes/docs_test.go TestRights",
	"kubernetes/work.yaml":                    "provisioners/kubernetes/docs_test.go TestTheExampleOfWork",
	"prometheus/rules.yaml":                   "cmd/forewarm/metrics_test.go TestRulesOfPrometheus",
	"systemd/forewarm-agent.service":          "cmd/forewarm-agent/cluster_test.go TestUnitsOfTheAgent",
	"systemd/forewarm-history":                "cmd/forewarm-agent/cluster_test.go TestTheHistoryOfACluster",
	"systemd/forewarm-history.service":        "cmd/forewarm-agent/cluster_test.go TestUnitsOfTheAgent",
	"systemd/forewarm-history.timer":          "cmd/forewarm-agent/cluster_test.go TestUnitsOfTheAgent",
	"systemd/forewarm-node-containers.conf":   "cmd/forewarm-node/main_test.go TestTheDropInFitsTheUnit",
	"systemd/forewarm-node.service":           "cmd/forewarm-node/main_test.go TestTheUnitFits",
	"systemd/forewarm-server.service":         "cmd/forewarm/internal/daemon/examples_test.go TestUnits",
	"systemd/forewarm-worker-cluster.service": "cmd/forewarm/internal/daemon/examples_test.go TestUnits",
	"systemd/forewarm-worker.service":         "cmd/forewarm/internal/daemon/examples_test.go TestUnits",
}

var quoted = regexp.MustCompile(`"[^"\n]*"`)

// Each file that people install has a test, which is there and names it.
func TestEveryDeployedFileIsTried(t *testing.T) {
	t.Parallel()
	found := 0
	require.NoError(t, filepath.WalkDir(root+"deploy", func(at string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(at, root+"deploy/")
		if err != nil || entry.IsDir() || name == "README.md" || name == ".gitignore" {
			return err
		}
		found++
		file, test, _ := strings.Cut(trials[name], " ")
		require.NotEmpty(t, file, "no test loads or runs deploy/%s", name)
		text, err := os.ReadFile(root + file) //nolint:gosec // our own files
		require.NoError(t, err, "deploy/%s", name)
		require.Contains(t, string(text), "func "+test+"(", "deploy/%s: %s", name, file)
		named := false
		for _, word := range quoted.FindAllString(string(text), -1) {
			is, _ := path.Match(path.Base(strings.Trim(word, `"`)), path.Base(name))
			named = named || is
		}
		require.True(t, named, "%s does not read deploy/%s", file, name)
		return nil
	}))
	require.Len(t, trials, found, "each file that is named is there")
}

// version reads what comes behind a word, up to the end of its major and minor number.
func version(t *testing.T, text, behind string) (major, minor int) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + behind + `(\d+)\.(\d+)`).FindStringSubmatch(text)
	require.NotNil(t, m, behind)
	major, _ = strconv.Atoi(m[1])
	minor, _ = strconv.Atoi(m[2])
	return major, minor
}

// The image is built by a Go that go.mod takes, from a program that there is; what it starts and where it keeps its
// data are what it copies; and nothing that the build needs is left out, nor are secrets taken in.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(root + name) //nolint:gosec // our own files
		require.NoError(t, err)
		return string(text)
	}
	file := read("deploy/Dockerfile")
	major, minor := version(t, file, "FROM golang:")
	leastMajor, leastMinor := version(t, read("go.mod"), "go ")
	require.True(t, major == leastMajor && minor >= leastMinor, "go.mod asks for Go %d.%d", leastMajor, leastMinor)
	built := regexp.MustCompile(`-o (\S+) \./(\S+) `).FindStringSubmatch(file)
	require.NotNil(t, built)
	require.FileExists(t, root+built[2]+"/main.go")
	copied := regexp.MustCompile(`(?m)^COPY --from=build ` + built[1] + ` (\S+)$`).FindStringSubmatch(file)
	require.NotNil(t, copied)
	require.Contains(t, file, `ENTRYPOINT ["`+copied[1]+`"]`)
	data := regexp.MustCompile(`(?m)^ENV FOREWARM_DATA_DIR=(\S+)$`).FindStringSubmatch(file)
	require.NotNil(t, data)
	require.Regexp(t, `(?m)^COPY --from=build --chown=\S+ --chmod=0700 \S+ `+data[1]+`$`, file)
	ignored := strings.Fields(read("deploy/Dockerfile.dockerignore"))
	require.Contains(t, ignored, "deploy/.env", "it has the passwords and the pepper")
	for _, name := range ignored {
		require.True(t, strings.HasPrefix(name, ".") || name == "bin" || name == "deploy/.env", name)
	}
}
