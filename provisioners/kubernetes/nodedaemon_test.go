//go:build clouds

package kubernetes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
)

func withDaemon(program string) func(*kubernetes.Config) {
	return func(c *kubernetes.Config) {
		c.Probe = kubernetes.ProbeLogs
		c.Daemon = kubernetes.Daemon{Program: program, SharedUser: true, Args: []string{"--source", "nvidia smi"}}
	}
}

// createWithDaemon makes a machine whose daemon has what it needs to join.
func (w *world) createWithDaemon(t *testing.T) *corev1.Pod {
	t.Helper()
	spec := w.testSpec()
	spec.Daemon = provisioners.Daemon{URL: "https://forewarm.example", Token: "it's secret"}
	for range 2 {
		_, err := w.Create(t.Context(), "token", spec)
		require.NoError(t, err)
	}
	pods := w.listPods()
	require.Len(t, pods, 1)
	return &pods[0]
}

func TestThePlaceholdersTokenIsInASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withDaemon("/usr/local/bin/forewarm-node"))
	require.True(t, w.StartsDaemons())
	pod := w.createWithDaemon(t)
	text, err := pod.Marshal()
	require.NoError(t, err)
	require.NotContains(t, string(text), "it's", "many may read a pod")
	secret, err := w.core.Secrets(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"join-token": "it's secret"}, secret.StringData)
	require.Equal(t, pod.OwnerReferences, secret.OwnerReferences, "both go with the record")
	hold := pod.Spec.Containers[0]
	require.Contains(t, hold.Env, corev1.EnvVar{Name: "NVIDIA_DRIVER_CAPABILITIES", Value: "compute,utility"})

	none := newWorld(t)
	require.False(t, none.StartsDaemons())
	require.NotContains(t, none.createWithDaemon(t).Spec.Containers[0].Command[2], "daemon")
	require.NotContains(t, none.server.Used(), apitest.Use{Verb: "create", Resource: "secrets"})
}

// The command of a placeholder keeps the daemon running, hands it the token by its standard input
// alone, and holds the GPUs as without it.
func TestAPlaceholderRunsTheDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin, expires := filepath.Join(dir, "bin"), filepath.Join(dir, "expires-at")
	require.NoError(t, os.Mkdir(bin, 0o700))
	for name, text := range map[string]string{
		"nvidia-smi": "echo 0, GPU-8f1c, 81920, 0",
		"sleep":      "exec /bin/sleep 0.01",
		// The daemon ends once for a reason that passes, and then for good, when its node is over.
		"forewarm-node": `printf '%s|' "$@" "$(cat)" "${FOREWARM_JOIN_TOKEN-unset}" >>"` + dir + `/ran"
if [ ! -e "` + dir + `/again" ]; then : >"` + dir + `/again"; exit 1; fi
echo 1 >"` + expires + `.new"; mv "` + expires + `.new" "` + expires + `"`,
	} {
		require.NoError(t, forklock.WriteProgram(filepath.Join(bin, name), "#!/bin/sh\n"+text+"\n"))
	}
	w := newWorld(t, withDaemon(filepath.Join(bin, "forewarm-node")))
	command := w.createWithDaemon(t).Spec.Containers[0].Command
	require.Equal(t, "/etc/forewarm/expires-at", command[4])
	command[4] = expires
	run := exec.CommandContext(t.Context(), command[0], command[1:]...) //nolint:gosec // our own
	run.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "FOREWARM_JOIN_TOKEN=it's secret"}
	output, err := run.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.True(t, strings.HasPrefix(string(output), "forewarm-gpus "), "%s", output)
	ran, err := os.ReadFile(filepath.Join(dir, "ran"))
	require.NoError(t, err)
	once := "run|--url|https://forewarm.example|--node|nod_1|--token-file|-|--state-dir|/var/lib/forewarm-node/state|" +
		"--hold-dir|/var/lib/forewarm-node/holds|--shared-user|--source|nvidia smi|it's secret|unset|"
	require.Equal(t, once+once, string(ran))
}

func TestMistakesOfTheDaemon(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*kubernetes.Config){
		"daemon.program: is empty": func(c *kubernetes.Config) { c.Daemon.SharedUser = true },
		"no absolute path": func(c *kubernetes.Config) {
			c.Daemon.Program, c.Probe = "forewarm-node", kubernetes.ProbeLogs
		},
		"needs probe: logs": func(c *kubernetes.Config) { c.Daemon.Program = "/bin/forewarm-node" },
		"daemon: is not for use: observed": func(c *kubernetes.Config) {
			withDaemon("/bin/forewarm-node")(c)
			c.Use = kubernetes.UseObserved
		},
	} {
		c := testConfig("")
		change(&c)
		require.ErrorContains(t, c.WithDefaults().Validate(), want)
	}
}
