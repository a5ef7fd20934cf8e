package exec_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/exec"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

// faulty runs the example between the faults that a file asks for, so that the
// example itself needs none.
const faulty = `
python=$1 script=$2 state=$3 verb=$4
if rm "$state/fail-$verb" 2>/dev/null; then exit 1; fi
if rm "$state/mute-$verb" 2>/dev/null; then "$python" "$script" "$state" "$verb" >/dev/null; exit 1; fi
exec "$python" "$script" "$state" "$verb"
`

// pythonPath is the interpreter, empty where there is none. The system's own starts
// several times faster than what version managers put before it.
func pythonPath() string {
	const usual = "/usr/bin/python3"
	if _, err := os.Stat(usual); err == nil {
		return usual
	}
	path, err := osexec.LookPath("python3")
	if err != nil {
		return ""
	}
	return path
}

func TestShippedExample(t *testing.T) {
	t.Parallel()
	interpreter := pythonPath()
	if interpreter == "" {
		t.Log("there is no Python here: the example rests on machines that have one")
		return
	}
	script, err := filepath.Abs("../../deploy/exec/machines.py")
	require.NoError(t, err)
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		state := t.TempDir()
		config := exec.Config{
			Command: []string{"/bin/sh", "-c", faulty, "sh", interpreter, script, state}, Simulated: true,
			Timeout: 5 * time.Minute,
		}
		fault := func(name string) func() {
			return func() { require.NoError(t, os.WriteFile(filepath.Join(state, name), nil, 0o600)) }
		}
		return provisionertest.Subject{
			Provisioner: openScripts(t, config),
			Reopen:      func(t *testing.T) provisioners.Provisioner { return openScripts(t, config) },
			Spec:        provisioners.Spec{Type: "pretend-8", Region: "here"},
			OtherSpec:   provisioners.Spec{Type: "pretend-1", Region: "here"},
			Machines:    4, Advance: func(time.Duration) {}, BootWithin: time.Second, GoneWithin: time.Second,
			TimeOutCreate: fault("mute-create"), TimeOutDelete: fault("mute-delete"), FailDelete: fault("fail-delete"),
			Foreign: func() func() bool {
				theirs := filepath.Join(state, "machines", "theirs")
				require.NoError(t, os.MkdirAll(theirs, 0o700))
				return func() bool {
					_, err := os.Stat(theirs)
					return err == nil
				}
			},
			Reclaim:   func(id string) { require.NoError(t, os.RemoveAll(filepath.Join(state, "machines", id))) },
			Histories: 2, // an interpreter starts slowly
		}
	}})
}
