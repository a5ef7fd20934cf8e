package burnin_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/burnin"
)

// steps notes in which order GPUs are cleaned, and fails in those steps that are named.
type steps struct {
	burnin.Prober
	done  []string
	fails map[string]error
}

func (s *steps) step(name string) error {
	s.done = append(s.done, name)
	return s.fails[name]
}

func (s *steps) Restore(context.Context, []string) (string, error) {
	return "settings as before", s.step("settings")
}

func (s *steps) ResetClocks(context.Context, []string) (string, error) {
	return "clocks reset", s.step("clocks")
}

func (s *steps) Overwrite(context.Context, string) burnin.Result {
	if err := s.step("memory"); err != nil {
		return burnin.Result{State: burnin.Failed, Detail: err.Error()}
	}
	return burnin.Result{State: burnin.Passed, Detail: "memory overwritten"}
}

// What a holder set, such as a low power limit or a compute mode in which nobody may use a GPU, must not slow down or
// refuse the program that overwrites its memory.
func TestSettingsAreRestoredBeforeMemoryIsOverwritten(t *testing.T) {
	t.Parallel()
	s := &steps{}
	said, err := burnin.Cleaner{Prober: s, Clocks: s, Settings: s}.Clean(t.Context(), []string{"GPU-1"})
	require.NoError(t, err)
	require.Equal(t, []string{"settings", "clocks", "memory"}, s.done)
	require.Equal(t, "settings as before; clocks reset; memory overwritten", said)
}

// Whichever step fails, the others are done, as the memory is not left to the next holder because of a clock.
func TestEachStepOfCleaningIsTried(t *testing.T) {
	t.Parallel()
	s := &steps{fails: map[string]error{"settings": errors.New("the power limit is 200 W"),
		"clocks": errors.New("clocks are locked")}}
	_, err := burnin.Cleaner{Prober: s, Clocks: s, Settings: s}.Clean(t.Context(), []string{"GPU-1"})
	require.EqualError(t, err, "the power limit is 200 W\nclocks are locked")
	require.Equal(t, []string{"settings", "clocks", "memory"}, s.done)
	s = &steps{fails: map[string]error{"memory": errors.New("a fault at 0x10")}}
	_, err = burnin.Cleaner{Prober: s, Clocks: s, Settings: s}.Clean(t.Context(), []string{"GPU-1"})
	require.EqualError(t, err, "the memory of GPU GPU-1 was not overwritten: a fault at 0x10")
	require.Equal(t, []string{"settings", "clocks", "memory"}, s.done)
}
