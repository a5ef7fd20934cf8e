package jobs

import (
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/statefile"
)

// stopFile has, in the folder of an attempt, that it is to end: its runner looks for it.
const stopFile = "stop.json"

// heedEvery is how often a runner looks whether its command is to end.
const heedEvery = 200 * time.Millisecond

// Stop has attempts end that run here. What cannot be written down is tried again when the server
// names it again.
func (k *Keeper) Stop(all []contract.JobStop) {
	for _, s := range all {
		k.mu.Lock()
		a := k.attempts[s.JobKey]
		due := a != nil && a.result == nil && !a.told
		k.mu.Unlock()
		if !due {
			continue
		}
		log := k.Log.With("job", s.JobID, "attempt", s.Attempt)
		var before contract.JobStop
		found, err := a.folder.read(stopFile, &before) // an earlier daemon may have written it
		if !found {
			if err = statefile.Write(a.folder.file(stopFile), s); err == nil {
				log.Info("a job is told to end", "grace_s", s.GraceSeconds, "signal", s.Signal, "lead_s", s.LeadSeconds)
			}
		}
		if err != nil {
			log.Error("a job cannot be told to end", "error", err)
			continue
		}
		k.mu.Lock()
		a.told = true
		k.mu.Unlock()
	}
}

// awaitStop sends that the command is to end, once, if it is told so before it has ended.
func (f folder) awaitStop(exited <-chan struct{}) <-chan contract.JobStop {
	told := make(chan contract.JobStop, 1)
	go func() {
		tick := time.NewTicker(heedEvery)
		defer tick.Stop()
		for {
			var s contract.JobStop
			if found, err := f.read(stopFile, &s); found && err == nil {
				told <- s
				return
			}
			select {
			case <-exited:
				return
			case <-tick.C:
			}
		}
	}()
	return told
}

// stepsToStop are the steps of a command that is told to end.
func stepsToStop(s contract.JobStop) []step {
	var all []step
	lead := time.Duration(0)
	if s.Signal != "" && s.LeadSeconds > 0 {
		all = append(all, step{channel: signalTo(s.LeaderOnly), data: []byte(s.Signal), stops: true})
		lead = time.Duration(s.LeadSeconds) * time.Second
	}
	return append(all, step{wait: lead, channel: session.Signal, data: []byte("TERM"), stops: true},
		step{wait: time.Duration(s.GraceSeconds) * time.Second, channel: session.Signal, data: []byte("KILL")},
		step{wait: waits.Kill, channel: session.Result})
}
