package hold_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
)

// killedAt is the variable by which this program is a daemon that kills itself at a step; where and which hold follow.
const killedAt = "FOREWARM_TEST_KILLED_AT"

// stepsOfAHold are those that a daemon writes down, and what it does between them.
var stepsOfAHold = []string{"opened", "working", "ending", "cleaning", "cleared", "proved", "told"}

// live is the life of a hold up to a step, at which this process is killed as by the kernel.
func live(step, dir, id, program string) error {
	at := func(name string) {
		if name == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	k, err := hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: clock.NewManual(day), Log: slog.New(slog.DiscardHandler), Grace: graceOf(step), Launcher: []string{program}})
	if err != nil {
		return err
	}
	k.Look(gpus(0, 400), day)
	p, err := k.Open(hold.Hold{AllocationID: id, GPUUUIDs: []string{"GPU-1"}})
	if err != nil {
		return err
	}
	at("opened")
	told, err := workOn(p)
	if err != nil {
		return err
	}
	at("working")
	k.End([]string{id})
	at("ending")
	if step == "cleaning" {
		_, _ = told.Read(make([]byte, 1)) // it was asked to end, and does not
	}
	at("cleaning")
	<-k.Changed()
	at("cleared")
	k.Look(gpus(0, 400), day.Add(time.Second))
	at("proved")
	k.Cleaned()
	k.End(nil)
	at("told")
	return fmt.Errorf("there is no step %s", step)
}

// graceOf has the daemon that is killed while it cleans be there to be killed.
func graceOf(step string) time.Duration {
	if step == "cleaning" {
		return time.Hour
	}
	return 50 * time.Millisecond
}

// workOn begins work that does not heed TERM, but tells of it, and prints its number.
func workOn(p hold.Place) (told *os.File, err error) {
	if err := syscall.Mkfifo(filepath.Join(p.Home, "told"), 0o666); err != nil {
		return nil, err
	}
	if told, err = os.OpenFile(filepath.Join(p.Home, "told"), os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if err = told.Chmod(0o666); err != nil { //nolint:gosec // the work writes to it
		return nil, err
	}
	work := exec.Command("/bin/sh", "-c", `trap 'echo >told' TERM; echo >told; while :; do sleep 1000; done`)
	work.Env, work.Dir = append([]string{"PATH=" + os.Getenv("PATH")}, p.Environment...), p.Home
	work.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if p.OwnUser {
		work.SysProcAttr.Credential = &syscall.Credential{Uid: p.UID, Gid: p.GID}
	}
	if err = work.Start(); err != nil {
		return nil, err
	}
	if _, err = told.Read(make([]byte, 1)); err == nil { // it heeds TERM by now
		_, err = fmt.Println(work.Process.Pid)
	}
	return told, err
}

// A daemon is killed at each step of a hold. The next one ends what is left, proves it, and opens the hold no more.
func TestADaemonThatIsKilledAtAnyStepLeavesNothing(t *testing.T) {
	for n, step := range stepsOfAHold {
		t.Run(step, func(t *testing.T) {
			dir, id := newDir(t), alc(100+n)
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), killedAt+"="+strings.Join([]string{step, dir, id, launchtest.Launcher()[0]}, " "))
			var out, failed bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &failed
			require.Error(t, cmd.Run())
			require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), failed.String())

			k := keeperIn(t, dir)
			k.Resume()
			for seconds := 2; len(k.Cleaned()) == 0; seconds++ {
				k.End([]string{id}) // the server repeats itself until it is proved
				if !k.AwaitsLook() {
					awaitChange(t, k)
				}
				k.Look(gpus(0, 400), day.Add(time.Duration(seconds)*time.Second))
			}
			proof := k.Cleaned()
			require.Len(t, proof, 1)
			require.Empty(t, proof[0].Problem)
			if pid := strings.TrimSpace(out.String()); pid != "" {
				require.False(t, alive(pid))
			}
			require.NoDirExists(t, filepath.Join(dir, "holds", id))
			_, err := k.Open(hold.Hold{AllocationID: id})
			require.ErrorIs(t, err, hold.ErrEnded)
		})
	}
}
