// Command rest measures what an embedded installation costs while nobody asks it for
// anything. See bench/README.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

var (
	binary   = flag.String("binary", "bin/forewarm", "the program")
	booked   = flag.Int("booked", 1000, "reservations of the coming days")
	duration = flag.Duration("duration", time.Minute, "length of one measurement")
	warmUp   = flag.Duration("warmup", 5*time.Second, "time before each measurement that is not counted")
	count    = flag.Int("count", 1, "number of runs; the figure is their median")
)

func main() {
	flag.Parse()
	if err := runBenchmark(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func runBenchmark(ctx context.Context, out io.Writer) error {
	var percent rig.Series
	for range *count {
		used, err := measureOnce(ctx)
		if err != nil {
			return err
		}
		percent = append(percent, 100*used.Seconds()/duration.Seconds())
	}
	percent.Print(out, "rest_cpu_percent", "%")
	return nil
}

// measureOnce starts the program on an empty folder, books, and lets it be.
func measureOnce(ctx context.Context) (used time.Duration, err error) {
	dir, err := os.MkdirTemp("", "forewarm-rest-")
	if err != nil {
		return 0, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd := exec.CommandContext(ctx, *binary, "up", "--listen", "127.0.0.1:0") //nolint:gosec // what the caller named
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+filepath.Join(dir, "data"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "FOREWARM_DATABASE=", "FOREWARM_REDIS=")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", *binary, err)
	}
	defer func() {
		stopped := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
		if err = errors.Join(err, stopped); err != nil {
			err = fmt.Errorf("%w; it said: %.2000s", err, log.Bytes())
		}
	}()
	server, key, err := rig.AwaitContext(filepath.Join(dir, "config", "forewarm", "contexts.yaml"))
	if err != nil {
		return 0, err
	}
	if err := bookAhead(ctx, server, key, *booked); err != nil {
		return 0, err
	}
	time.Sleep(*warmUp)
	before := rig.ProcessTime(cmd.Process.Pid)
	time.Sleep(*duration)
	return rig.ProcessTime(cmd.Process.Pid) - before, nil
}

// bookAhead books windows of an hour, one after the other, from the day after tomorrow on.
func bookAhead(ctx context.Context, server, key string, n int) error {
	c := rig.NewConnection(server, key)
	defer c.Close()
	first := time.Now().UTC().Truncate(time.Hour).Add(48 * time.Hour)
	bodies := make([][]byte, n)
	for at := range bodies {
		start := first.Add(time.Duration(at/4) * time.Hour) // the machine has four GPUs
		bodies[at] = fmt.Appendf(nil, `{"pool":"local","gpus":1,"start":%q,"end":%q}`, start.Format(time.RFC3339),
			start.Add(time.Hour).Format(time.RFC3339))
	}
	a, err := c.Post(ctx, "/v1/reservations/batch", "application/json",
		fmt.Appendf(nil, "[%s]", bytes.Join(bodies, []byte(","))), http.StatusOK)
	if err != nil {
		return err
	}
	var answer struct {
		Accepted int `json:"accepted"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil || answer.Accepted != n {
		return errors.Join(fmt.Errorf("of %d reservations %d were accepted: %.300s", n, answer.Accepted, a.Body), err)
	}
	return nil
}
