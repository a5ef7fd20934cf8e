package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/contract"
)

// pools is a control plane's answer about the pool.
type pools struct {
	pool  contract.Pool
	fails error
	asked int
}

func (p *pools) Pool(context.Context, string) (contract.Pool, error) {
	p.asked++
	return p.pool, p.fails
}

// stepInRush is a step in the middle of the morning's jobs, when GPUs are worth holding.
func stepInRush(t *testing.T, p *pools) (bench, agent.Report) {
	t.Helper()
	b := newBench(t, func(c *agent.Config) { c.Pools = p })
	b.playRush(t)
	rep, err := b.Step(t.Context())
	require.NoError(t, err)
	return b, rep
}

func observedPool(shared ...contract.SharedNodes) contract.Pool {
	return contract.Pool{ID: poolID, Use: "observed", GPUsPerNode: 8, Room: &contract.PoolRoom{Shared: shared}}
}

// What is free beside other work is not asked for, and is again when it is gone.
func TestRoomOnNodesThatAreUpIsNotAskedFor(t *testing.T) {
	t.Parallel()
	_, without := stepInRush(t, &pools{pool: observedPool()})
	require.NotEmpty(t, without.Plan.Windows)

	p := &pools{pool: observedPool(contract.SharedNodes{FreeGPUs: 7, Nodes: 3})}
	b, with := stepInRush(t, p)
	require.Equal(t, without.Prediction.Now.Held, with.Prediction.Now.Held, "it holds as much")
	require.Empty(t, with.Plan.Windows, "of which nothing is missing")
	require.True(t, with.Sent, "an empty plan gives up what was promised")
	require.Contains(t, with.Choices[0].Why, "3 nodes are up with 21 GPUs free: none is added")

	p.pool.Room = nil // the cluster was not seen lately
	rep, err := b.Step(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, rep.Plan.Windows)
}

// Whoever cannot tell what is free is no reason to promise nothing.
func TestAPlanWithoutKnowingTheRoom(t *testing.T) {
	t.Parallel()
	b, rep := stepInRush(t, &pools{fails: errors.New("no route to host")})
	require.NotEmpty(t, rep.Plan.Windows)
	require.Len(t, b.control.plans, 1)
}

// In a pool whose GPUs are handed out one by one, a promise is of GPUs, wherever they are: it
// is asked about once.
func TestAReservedPoolIsAskedAboutOnce(t *testing.T) {
	t.Parallel()
	p := &pools{pool: contract.Pool{ID: poolID, Use: "reserved"}}
	b, rep := stepInRush(t, p)
	require.NotEmpty(t, rep.Plan.Windows)
	_, err := b.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, p.asked)
}

// Where the user has not said how long a boot takes, the pool does, and is asked again after an hour: who boots fast
// holds less, and asks for less long.
func TestTheBootsOfThePoolAreLearned(t *testing.T) {
	t.Parallel()
	p := &pools{pool: contract.Pool{ID: poolID, Use: "reserved", BootP50Seconds: 60.4, BootSamples: 3}}
	b := newBench(t, func(c *agent.Config) { c.Pools, c.Place.Boot = p, 0 })
	b.playRush(t)
	learned, err := b.Step(t.Context())
	require.NoError(t, err)
	_, given := stepInRush(t, p)
	require.Less(t, learned.Prediction.Now.Held.Levels, given.Prediction.Now.Held.Levels)
	require.True(t, learned.Prediction.Now.End.Before(given.Prediction.Now.End))

	p.asked, p.pool.BootP50Seconds, p.pool.BootP95Seconds = 0, 600, 720
	for range 2 {
		_, err = b.Step(t.Context())
		require.NoError(t, err)
	}
	require.Zero(t, p.asked)
	b.clock.Advance(time.Hour)
	_, err = b.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, p.asked)
	require.False(t, b.predict.SetBoot(10*time.Minute, 2*time.Minute), "it was learned")
	require.False(t, b.predict.SetBoot(10*time.Minute+30*time.Second, 2*time.Minute), "it is next to the same")
	require.True(t, b.predict.SetBoot(10*time.Minute, 4*time.Minute))
	require.True(t, b.predict.SetBoot(15*time.Minute, 4*time.Minute))
}
