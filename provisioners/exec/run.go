package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

const (
	mostOutput = 4 << 20         // a list of some 10,000 machines
	mostErrors = 4 << 10         // of standard error, its end
	patience   = 5 * time.Second // between asking a process group to end and ending it
)

// askScript runs the verb's script and returns its answer, or the error that the
// answer is.
func (s *Scripts) askScript(ctx context.Context, q question) (answer, error) {
	q.Version = wireVersion
	input, err := json.Marshal(q)
	if err != nil {
		return answer{}, provisioners.Errorf(provisioners.KindBadSpec, "writing the question: %v", err)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return answer{}, provisioners.Ended(ctx)
	}
	done, err := s.runScript(ctx, q.Verb, input)
	if err != nil {
		return answer{}, err
	}
	return done.parseAnswer(q.Verb)
}

// outcome is what a script that ended by itself left behind.
type outcome struct {
	output, errors []byte
	exit           error // nil for exit code 0
}

// runScript starts the script in a process group of its own. A script that is out of
// time is ended with whatever it started.
func (s *Scripts) runScript(ctx context.Context, v verb, input []byte) (outcome, error) {
	timeout := s.config.timeoutOf(v)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	argv := s.config.commandOf(v)
	command := osexec.CommandContext(limited, argv[0], argv[1:]...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = patience
	output, errs := &head{most: mostOutput}, &tail{most: mostErrors}
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), output, errs
	command.Env, command.Dir = s.scriptEnvironment(), s.config.Dir
	if err := command.Start(); err != nil {
		return outcome{}, &provisioners.Error{Kind: provisioners.KindTransient, Message: "starting script " + string(v),
			Err: err}
	}
	err := command.Wait()
	if limited.Err() != nil {
		// What is left of the group did not heed the first signal.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		return outcome{}, s.outOfTime(ctx, v, timeout, errs)
	}
	if output.cut {
		return outcome{}, notUnderstood(v, fmt.Errorf("it is longer than %d bytes", mostOutput))
	}
	var exit *osexec.ExitError
	if err != nil && !errors.As(err, &exit) {
		err = nil // a pipe: the answer itself says whether it is whole
	}
	return outcome{output: output.kept.Bytes(), errors: errs.kept, exit: err}, nil
}

func (s *Scripts) outOfTime(ctx context.Context, v verb, timeout time.Duration, errs *tail) error {
	cause := ctx.Err()
	if cause == nil {
		cause = fmt.Errorf("it took longer than %v: %w", timeout, context.DeadlineExceeded)
	}
	return &provisioners.Error{Kind: v.doubtKind(), Message: "script " + string(v) + " was ended" + errs.quoted(),
		Err: cause}
}

// scriptEnvironment is what scripts get of ours: secrets of the control plane are none
// of their business.
func (s *Scripts) scriptEnvironment() []string {
	env := []string{}
	for _, name := range append([]string{"PATH", "HOME"}, s.config.Env...) {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// parseAnswer reads what the script wrote. An error document counts whatever the exit
// code; a success counts only with exit code 0.
func (o outcome) parseAnswer(v verb) (answer, error) {
	var a answer
	err := decodeStrictly(o.output, &a)
	if err == nil && a.Error != nil && a.hasOnly("error") {
		return answer{}, a.Error.portError(v)
	}
	said := (&tail{kept: o.errors}).quoted()
	if o.exit != nil {
		return answer{}, &provisioners.Error{Kind: v.failedKind(), Message: "script " + string(v) + " failed" + said,
			Err: o.exit}
	}
	if err != nil {
		return answer{}, notUnderstood(v, fmt.Errorf("%w%s", err, said))
	}
	return a, nil
}

// head keeps the beginning of what is written and whether there was more.
type head struct {
	kept bytes.Buffer
	most int
	cut  bool
}

// Write never fails, so that a script that writes too much is not stopped in the
// middle of what it does.
func (h *head) Write(p []byte) (int, error) {
	fits := min(len(p), h.most-h.kept.Len())
	h.cut = h.cut || fits < len(p)
	h.kept.Write(p[:fits])
	return len(p), nil
}

// tail keeps the end of what is written.
type tail struct {
	kept []byte
	most int
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if excess := len(t.kept) - t.most; excess > 0 {
		t.kept = append(t.kept[:0], t.kept[excess:]...)
	}
	return len(p), nil
}

// quoted is for the end of an error's text.
func (t *tail) quoted() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "?"))
	if text == "" {
		return ""
	}
	return "; it wrote: " + text
}
