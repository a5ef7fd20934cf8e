package burnin_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/node/burnin"
)

// childVariable has the test binary play a child with a library.
const childVariable = "PLAYED_GPU_CHILD="

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], childVariable) {
		switch how := strings.TrimPrefix(os.Args[1], childVariable); how {
		case "die":
			os.Exit(127) // as a missing symbol does
		default:
			if burnin.Serve(os.Stdin, os.Stdout, how, clock.System{}) != nil {
				os.Exit(1)
			}
		}
		return
	}
	leaktest.VerifyTestMain(m)
}

const uuid = "GPU-11111111-1111-1111-1111-111111111111"

func children(how string) *burnin.Children {
	return &burnin.Children{Command: []string{os.Args[0], childVariable + how}, Within: time.Minute}
}

func TestWithoutCUDANothingIsTested(t *testing.T) {
	t.Parallel()
	c := children("/nonexistent/libcuda.so.1")
	for _, r := range []burnin.Result{c.Test(t.Context(), uuid), c.Overwrite(t.Context(), uuid)} {
		require.Equal(t, burnin.Skipped, r.State)
		require.Regexp(t, "^no CUDA: ", r.Detail)
	}
	all, err := burnin.Tester{Prober: c, Mode: burnin.Require, Again: time.Nanosecond}.Test(t.Context(), []string{uuid})
	require.NoError(t, err)
	require.Equal(t, burnin.Failed, all[uuid].State)
	require.Contains(t, all[uuid].Detail, ", and it is required")
}

func TestAChildThatIsEndedByTheLibrary(t *testing.T) {
	t.Parallel()
	r := children("die").Test(t.Context(), uuid)
	require.Equal(t, burnin.Failed, r.State)
	require.Contains(t, r.Detail, "ended early (exit status 127")
}

func TestWhatCannotBeBegunIsSkipped(t *testing.T) {
	t.Parallel()
	c := burnin.Children{Command: []string{"/nonexistent/program"}}
	require.Equal(t, burnin.Skipped, c.Test(t.Context(), uuid).State)
}

// played is a prober that answers a GPU's tests in turn.
type played struct {
	burnin.Prober
	tests   atomic.Int32
	results map[string][]burnin.Result
}

func (p *played) Test(_ context.Context, id string) burnin.Result {
	return p.results[id][int(p.tests.Add(1)-1)/len(p.results)]
}

// A GPU is held to have failed if a second test, a while later, says so too.
func TestAFailureIsFoundTwice(t *testing.T) {
	t.Parallel()
	good := burnin.Result{State: burnin.Passed, Detail: "good"}
	bad := burnin.Result{State: burnin.Failed, Detail: "bad"}
	for name, c := range map[string]struct {
		results []burnin.Result
		want    burnin.Result
	}{
		"good":       {[]burnin.Result{good}, good},
		"bad, twice": {[]burnin.Result{bad, bad}, burnin.Result{State: burnin.Failed, Detail: "bad (twice: bad)"}},
		"bad, once": {[]burnin.Result{bad, good},
			burnin.Result{State: burnin.Passed, Detail: "good; a first test failed: bad"}},
	} {
		p := &played{results: map[string][]burnin.Result{"a": c.results}}
		all, err := burnin.Tester{Prober: p, Again: time.Nanosecond}.Test(t.Context(), []string{"a"})
		require.NoError(t, err, name)
		require.Equal(t, map[string]burnin.Result{"a": c.want}, all, name)
		require.Equal(t, len(c.results), int(p.tests.Load()), name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := burnin.Tester{Prober: &played{results: map[string][]burnin.Result{"a": {bad}}}}.Test(ctx, []string{"a"})
	require.ErrorIs(t, err, context.Canceled, "it does not wait for the second one")
	all, err := burnin.Tester{Mode: burnin.Never}.Test(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.Equal(t, burnin.Result{State: burnin.Skipped, Detail: "burn_in is none"}, all["a"])
}
