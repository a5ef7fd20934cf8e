// Package demo is the cast of "forewarm up --demo": a synthetic job history, a
// scripted person who submits jobs, the real agent that learns from the
// history, and the narrator of what happens. Nothing in it is measured, and
// everything simulated is marked.
package demo

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The rhythm of the history. A demo's day is two minutes long: every period a
// training sweep starts at about the same time, now and then it is skipped, and
// now and then somebody needs two GPUs at no particular time.
const (
	Period    = 2 * time.Minute
	bin       = 20 * time.Second // the sweep's start lies within one bin of the period
	past      = 1500             // periods of history before the demo's first
	jitter    = 3 * time.Second  // by which one sweep may be earlier in its period than another
	sweepGPUs = 4
	extraGPUs = 2
	runFor    = 14 * time.Second
	stale     = 10 * time.Minute // an interruption that long would teach the agent silence
	firstIn   = 50 * time.Second // the first sweep comes this long after the start, at the least
)

// Arrival is one job of the synthetic history.
type Arrival struct {
	At   time.Time
	GPUs int
	Name string
	For  time.Duration
}

// Rhythm is the pattern of one demo. The same anchor gives the same jobs.
type Rhythm struct {
	Anchor time.Time `json:"anchor"` // start of the first period's bin
}

// NewRhythm returns a rhythm whose first sweep comes soon after now.
func NewRhythm(now time.Time) Rhythm {
	return Rhythm{Anchor: now.Add(firstIn + bin - 1).Truncate(bin)}
}

// hashPeriod is a number that depends on nothing but the period and what it is for.
func hashPeriod(period int, what string) uint32 {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "forewarm demo %d %s", period, what) // a hash does not fail
	return h.Sum32()
}

// Period returns the jobs of the i-th period; those of the past are negative.
// The periods next to the start always have their sweep, and nothing comes in
// between before the first one.
func (r Rhythm) Period(i int) []Arrival {
	start := r.Anchor.Add(time.Duration(i) * Period)
	var jobs []Arrival
	if skipped := hashPeriod(i, "skip")%12 == 0 && (i < -1 || i > 3); !skipped {
		offset := 6*time.Second + time.Duration(hashPeriod(i, "sweep"))*time.Second%(jitter+time.Second)
		jobs = append(jobs, Arrival{At: start.Add(offset), GPUs: sweepGPUs, Name: fmt.Sprintf("sweep-%d", i+past),
			For: runFor})
	}
	if i != -1 && i != 0 && hashPeriod(i, "extra")%3 == 0 {
		offset := 30*time.Second + time.Duration(hashPeriod(i, "when")%80)*time.Second
		jobs = append(jobs, Arrival{At: start.Add(offset), GPUs: extraGPUs, Name: fmt.Sprintf("notebook-%d", i+past),
			For: runFor})
	}
	return jobs
}

// Files of a demo in its data directory.
type Files struct {
	Rhythm  string // what the pattern is
	History string // CSV in the form of the job traces
	Log     string // what the training scripts print
	Agent   string // directory of the agent
}

// Prepare finds the demo in dir or begins a new one. A demo that was interrupted
// for longer than ten minutes is begun anew: its agent would have learned that
// nobody comes.
func Prepare(dir string, now time.Time) (Rhythm, Files, error) {
	f := Files{Rhythm: filepath.Join(dir, "demo.json"), History: filepath.Join(dir, "synthetic-history.csv"),
		Log: filepath.Join(dir, "synthetic-training.log"), Agent: filepath.Join(dir, "agent")}
	text, err := os.ReadFile(f.Rhythm)
	if err == nil {
		var r Rhythm
		info, serr := os.Stat(f.History)
		if json.Unmarshal(text, &r) == nil && serr == nil && now.Sub(info.ModTime()) < stale {
			return r, f, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Rhythm{}, f, fmt.Errorf("reading the demo's rhythm: %w", err)
	}
	r := NewRhythm(now)
	return r, f, beginDemo(r, f)
}

// beginDemo writes the history of a new demo and forgets what its agent knew.
func beginDemo(r Rhythm, f Files) error {
	if err := os.RemoveAll(f.Agent); err != nil {
		return fmt.Errorf("forgetting the demo before: %w", err)
	}
	if err := os.MkdirAll(f.Agent, 0o700); err != nil {
		return fmt.Errorf("making the agent's directory: %w", err)
	}
	history, err := os.OpenFile(f.History, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing the synthetic history: %w", err)
	}
	err = errors.Join(WriteHistory(history, r), history.Close(), os.WriteFile(f.Log, nil, 0o600))
	if err != nil {
		return fmt.Errorf("writing the synthetic history: %w", err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the demo's rhythm: %w", err)
	}
	return os.WriteFile(f.Rhythm, text, 0o600)
}

// WriteHistory writes the jobs of the past, oldest first.
func WriteHistory(w io.Writer, r Rhythm) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"job_id", "user", "group", "submit_ts", "duration_s", "gpus", "status"}); err != nil {
		return err
	}
	for i := -past; i < 0; i++ {
		for _, job := range r.Period(i) {
			if err := out.Write(csvRow(job)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvRow(a Arrival) []string {
	return []string{a.Name, "", "demo", strconv.FormatInt(a.At.Unix(), 10), strconv.Itoa(int(a.For.Seconds())),
		strconv.Itoa(a.GPUs), ""}
}
