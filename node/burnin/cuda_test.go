//go:build linux && cgo

package burnin_test

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/burnin"
)

// driver builds a stand-in of the CUDA driver's library.
func driver(t *testing.T, flags ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	require.NoError(t, err, "the stand-in of libcuda.so.1 needs a C compiler, as this build does")
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	output, err := exec.CommandContext(t.Context(), compiler,
		append(flags, "-O2", "-shared", "-fPIC", "-o", path, "testdata/cuda.c")...).CombinedOutput()
	require.NoError(t, err, string(output))
	return path
}

func TestMemoryThatIsGood(t *testing.T) {
	require.True(t, burnin.HasCUDA)
	c := children(driver(t))
	r := c.Test(t.Context(), uuid)
	require.Equal(t, burnin.Passed, r.State, r.Detail)
	require.Regexp(t, `^149 MiB of 160 MiB written and read back in \d+\.\d s$`, r.Detail)
	r = c.Overwrite(t.Context(), uuid)
	require.Equal(t, burnin.Passed, r.State, r.Detail)
	require.Regexp(t, `^149 MiB of 160 MiB overwritten and read back in \d+\.\d s$`, r.Detail)
}

func TestWhatIsFoundOfAGPU(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		state  burnin.State
		detail string
	}{
		"a bit that is always 1": {[]string{"-DFLIP"}, burnin.Failed,
			`^1 words of its memory were not what was written, the first of them 987648 bytes after the beginning$`},
		"two addresses of one place": {[]string{"-DALIAS"}, burnin.Failed,
			`^\d{7} words of its memory were not what was written, the first of them 0 bytes after the beginning$`},
		"no memory": {[]string{"-DFULL"}, burnin.Failed,
			`^out of memory: 149 MiB are said to be free, and 0 MiB could be had$`},
		"memory of others": {[]string{"-DBUSY"}, burnin.Skipped,
			`^only 12 MiB of its memory are free$`},
		"kernels fail": {[]string{"-DSICK"}, burnin.Failed,
			`^cuLaunchKernel: error 719, a kernel failed$`},
		"no context": {[]string{"-DCONTEXT=214"}, burnin.Failed,
			`^cuCtxCreate: error 214, an error of its memory that`},
		"others have it": {[]string{"-DCONTEXT=46"}, burnin.Skipped,
			`^no CUDA: cuCtxCreate: error 46, it is unavailable$`},
		"CUDA does not begin": {[]string{"-DINIT=803"}, burnin.Skipped,
			`^no CUDA: cuInit: error 803, the driver's parts are of`},
		"an old driver": {[]string{"-DOLD"}, burnin.Skipped,
			`^no CUDA: the driver is too old, it lacks cuCtxCreate_v2$`},
		"another GPU": {[]string{"-DOTHER"}, burnin.Failed,
			`^the driver opens GPU-22111111-1111-1111-1111-111111111111 in its`},
		"no compiler in the driver": {[]string{"-DNOJIT"}, burnin.Passed,
			`^149 MiB of 160 MiB written and read back in \d+\.\d s, read back in samples alone: cuModuleLoadData: error 221`},
	} {
		r := children(driver(t, c.flags...)).Test(t.Context(), uuid)
		require.Equal(t, c.state, r.State, name+": "+r.Detail)
		require.Regexp(t, c.detail, r.Detail, name)
	}
}

// A bit that keeps its value is found when memory is overwritten, too: what was there before may still be.
func TestMemoryThatCannotBeOverwritten(t *testing.T) {
	r := children(driver(t, "-DFLIP")).Overwrite(t.Context(), uuid)
	require.Equal(t, burnin.Failed, r.State)
	require.Contains(t, r.Detail, "1 words of its memory were not what was written")
}

// A child that does not come back is asked to end and left alone, and no other is begun on its GPU before it has ended.
func TestADriverThatNeverReturns(t *testing.T) {
	c := children(driver(t, "-DHANG"))
	c.Within = 100 * time.Millisecond
	r := c.Test(t.Context(), uuid)
	require.Equal(t, burnin.Result{State: burnin.Failed, Detail: "the driver did not come to an end within 100ms"}, r)
	require.Eventually(t, func() bool { return !c.Hangs(uuid) }, time.Minute, time.Millisecond, "it was asked to end")
}
