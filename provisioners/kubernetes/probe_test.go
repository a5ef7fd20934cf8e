//go:build clouds

package kubernetes_test

import (
	"bufio"
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
)

func denyFault(verb, resource string) apitest.Fault {
	return apitest.Fault{On: usesOf(verb, resource),
		Refuse: &apitest.Refusal{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no"}}
}

// The second GPU counts no memory errors, the third had some.
const table = "0, GPU-8f1c, 23034, 0\n1, GPU-77aa, 23034, [N/A]\n2, GPU-dead, 23034, 3\n"

func packProbe(text string) string {
	return "forewarm-gpus " + base64.StdEncoding.EncodeToString([]byte(text)) + "\n"
}

func TestProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *kubernetes.Config) { c.Probe = kubernetes.ProbeLogs })
	spec := w.testSpec()
	spec.Type = "l4-2"
	made, err := w.Create(t.Context(), "token", spec)
	require.NoError(t, err)
	w.advanceClock(2 * time.Minute)
	w.requirePhase(t, made.ID, provisioners.Booting)
	w.server.Inject(denyFault("get", "pods/log"))
	_, err = w.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindDenied, provisioners.KindOf(err), "who cannot read it must be told")
	w.server.SetLog("forewarm", podName(made.ID), "hello\n"+packProbe("0, GPU-8f1c"))
	_, err = w.Get(t.Context(), made.ID)
	require.ErrorContains(t, err, "wrong number of fields")
	w.server.SetLog("forewarm", podName(made.ID), "hello\n"+packProbe(table))
	got := w.requirePhase(t, made.ID, provisioners.Running)
	want := []capacity.Device{
		{UUID: "GPU-8f1c", Index: 0, Model: "l4", MemoryMiB: 23_034},
		{UUID: "GPU-77aa", Index: 1, Model: "l4", MemoryMiB: 23_034},
	}
	require.Equal(t, want, got.Devices)
	w.server.SetLog("forewarm", podName(made.ID), "") // it was rotated away
	require.Equal(t, want, w.requirePhase(t, made.ID, provisioners.Running).Devices)
}

func TestProbesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "No devices were found\n", "0, GPU-1, 1, 0\n0, GPU-2, 1, 0\n", "0, GPU-1, 1, 0\n1, GPU-1, 1, 0\n",
		"x, GPU-1, 1, 0\n", "0, , 1, 0\n", "0, GPU-1, 1\n", "0, GPU-1, 1, many\n",
	} {
		w := newWorld(t, func(c *kubernetes.Config) { c.Probe = kubernetes.ProbeLogs })
		made := w.createInstance(t)
		w.advanceClock(2 * time.Minute)
		w.server.SetLog("forewarm", podName(made.ID), packProbe(text))
		if got, err := w.Get(t.Context(), made.ID); err == nil {
			require.Equal(t, provisioners.Booting, got.Phase, text)
		}
	}
}

// placeholderCommand runs what the placeholder would run, with programs of ours before the
// system's.
func placeholderCommand(t *testing.T, probe kubernetes.Probe, programs map[string]string,
	expires string) (run *exec.Cmd, file string) {
	t.Helper()
	w := newWorld(t, func(c *kubernetes.Config) { c.Probe = probe })
	made := w.createInstance(t)
	pod, err := w.core.Pods("forewarm").Get(t.Context(), podName(made.ID), metav1.GetOptions{})
	require.NoError(t, err)
	command, folder := pod.Spec.Containers[0].Command, t.TempDir()
	file = filepath.Join(folder, "expires-at")
	require.NoError(t, os.WriteFile(file, []byte(expires), 0o600))
	for program, text := range programs {
		require.NoError(t, forklock.WriteProgram(filepath.Join(folder, program), "#!/bin/sh\n"+text+"\n"))
	}
	require.Equal(t, "/etc/forewarm/expires-at", command[len(command)-1])
	run = exec.CommandContext(t.Context(), command[0], append(command[1:len(command)-1:len(command)-1], file)...)
	run.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "FILE=" + file}
	return run, file
}

func TestThePlaceholderEndsItself(t *testing.T) {
	t.Parallel()
	const farAway = "99999999999"
	laterPast := map[string]string{"sleep": `echo 1 > "$FILE"`}
	for what, test := range map[string]struct {
		programs map[string]string
		expires  string
	}{
		"its time is over":        {map[string]string{"sleep": "exit 99"}, "1"},
		"its time comes":          {laterPast, farAway},
		"it is given a time":      {laterPast, ""},
		"its time makes no sense": {laterPast, "soon"},
	} {
		run, _ := placeholderCommand(t, kubernetes.ProbeNone, test.programs, test.expires)
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s: %s", what, out)
	}
}

func TestThePlaceholderSaysItsGPUs(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"printf '" + `0, GPU-8f1c, 23034, 0\n1, GPU-77aa, 23034, [N/A]\n2, GPU-dead, 23034, 3\n` +
			"'": packProbe(table),
		"exit 9": "",
	} {
		run, _ := placeholderCommand(t, kubernetes.ProbeLogs, map[string]string{"nvidia-smi": answer}, "1")
		out, err := run.Output()
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}

// A shell that is process 1 ignores TERM unless it says otherwise; the kubelet
// would then wait out the whole grace.
func TestThePlaceholderGoesWhenItIsTold(t *testing.T) {
	t.Parallel()
	run, _ := placeholderCommand(t, kubernetes.ProbeNone,
		map[string]string{"sleep": "echo asleep; exec /bin/sleep 60"}, "")
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	t.Cleanup(func() { _ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL) })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "asleep\n", line)
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	var exit *exec.ExitError
	require.ErrorAs(t, run.Wait(), &exit)
	require.Equal(t, 143, exit.ExitCode())
}
