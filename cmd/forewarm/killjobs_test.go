package main_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Trap c for jobs: the server is killed again and again while jobs are submitted. Each submission that was
// acknowledged is there once, with all jobs of its array.
func TestTrapCJobsOutliveKillNine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeCloud(t)
	p, d, api := h.startUp(t, "--config", h.configFile())
	s := submissions{load: newLoad(api), made: map[string][]string{}}
	stop := s.start(t.Context(), 4)
	for range 4 {
		before := s.count()
		eventually(t, patience, func() string { // under load, and not before it
			if n := s.count() - before; n < 20 {
				return fmt.Sprintf("%d submissions", n)
			}
			return ""
		})
		p.kill()
		d.close()
		p = h.start(t, nil, "up", "--config", h.configFile())
		d.open(t, p.awaitAddress(t))
	}
	stop()
	require.Empty(t, s.load.faults)
	s.compare(t, api)
	require.Zero(t, p.stop(t, ending), p.errors.String())
}

// submissions are jobs that several people submit, and the ids that were acknowledged, by name.
type submissions struct {
	load *load
	mu   sync.Mutex
	made map[string][]string
}

func (s *submissions) start(ctx context.Context, people int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	for i := range people {
		wait.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.submit(ctx, fmt.Sprintf("job-%d-%d", i, n), n)
			}
		})
	}
	return func() { cancel(); wait.Wait() }
}

// submit submits a job, or an array, until it is answered.
func (s *submissions) submit(ctx context.Context, name string, n int) {
	in := contract.JobCreate{Pool: loadPool, Name: name, Command: []string{"true"}, Hold: n%2 == 0}
	if n%3 == 0 {
		in.Array = &contract.JobArray{Last: 2}
	}
	got, ok := askUntilAnswered(ctx, s.load, name, func(ctx context.Context) (contract.JobsSubmitted, error) {
		return s.load.api.SubmitJob(ctx, in, client.Options{})
	})
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range got.Jobs {
		s.made[name] = append(s.made[name], j.ID)
	}
}

func (s *submissions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.made)
}

// compare holds what was acknowledged against what is there.
func (s *submissions) compare(t *testing.T, api *client.Client) {
	t.Helper()
	there := map[string]map[string]bool{}
	for j, err := range api.Jobs(t.Context(), client.JobFilter{Filter: client.Filter{All: true, PageSize: 200}}) {
		require.NoError(t, err)
		if there[j.Name] == nil {
			there[j.Name] = map[string]bool{}
		}
		there[j.Name][j.ID] = true
	}
	require.Len(t, there, len(s.made))
	for name, ids := range s.made {
		require.Len(t, there[name], len(ids), name)
		for _, id := range ids {
			require.Contains(t, there[name], id, name)
		}
	}
}
