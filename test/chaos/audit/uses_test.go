package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/test/chaos/audit"
)

// handedOver is what visitors write down when a GPU goes from one tenant's allocation to
// another's, which sees nothing of the first.
const handedOver = `1772431200.000001 begins v1 alc_1 red GPU-a -
1772431200.100000 leaves v1 alc_1 red GPU-a process:mark.GPU-a.alc_1
1772431200.200000 works v1 alc_1 red GPU-a -
1772431200.300000 sees v1 alc_1 red GPU-a process:mark.GPU-a.alc_1
1772431200.400000 ends v1 alc_1 red GPU-a -
1772431201.000000 lingers v1 alc_1 red GPU-a -
1772431205.000000 begins v2 alc_2 blue GPU-a,GPU-b -
1772431205.200000 ends v2 alc_2 blue GPU-a,GPU-b -
`

func readUses(t *testing.T, text string) audit.Hands {
	t.Helper()
	uses, err := audit.ParseUses(strings.NewReader(text))
	require.NoError(t, err)
	return audit.ReadHands(uses, audit.Sharing{})
}

// Two may have a GPU of which there are two shares, and find each other's marks until those are proved gone.
func TestGPUsThatAreShared(t *testing.T) {
	t.Parallel()
	const text = `1772431200.000001 begins v1 alc_1 red GPU-a -
1772431201.000000 begins v2 alc_2 blue GPU-a -
1772431201.100000 finds v2 alc_2 blue GPU-a process:mark.GPU-a.alc_1
1772431202.000000 ends v1 alc_1 red GPU-a -
1772431206.000000 ends v2 alc_2 blue GPU-a -
`
	uses, err := audit.ParseUses(strings.NewReader(text))
	require.NoError(t, err)
	s := audit.Sharing{PerGPU: map[string]int{"GPU-a": 2},
		Cleaned: map[string]time.Time{"alc_1": time.Date(2026, 3, 2, 6, 0, 3, 0, time.UTC)}}
	h := audit.ReadHands(uses, s)
	require.Empty(t, h.TwoHands)
	require.Empty(t, h.Uncleaned)
	require.Equal(t, 1, h.Shared)

	more, err := audit.ParseUses(strings.NewReader(text + `1772431201.500000 begins v3 alc_3 red GPU-a -
1772431206.000000 finds v2 alc_2 blue GPU-a folder:alc_1
`))
	require.NoError(t, err)
	h = audit.ReadHands(more, s)
	require.Len(t, h.TwoHands, 2, "a third one came before one of two had left")
	require.Equal(t, []string{"alc_2 (blue) on GPU GPU-a found 1 marks of others: 06:00:06.000 folder:alc_1"}, h.Uncleaned)
}

func TestAHandOverIsCounted(t *testing.T) {
	t.Parallel()
	require.Equal(t, audit.Hands{Sessions: 2, HandOvers: 1, Marks: 1}, readUses(t, handedOver))
	uses, err := audit.ParseUses(strings.NewReader(handedOver))
	require.NoError(t, err)
	require.Equal(t, audit.Use{At: time.Date(2026, 3, 2, 6, 0, 0, 1000, time.UTC), What: "begins", Visit: "v1",
		Allocation: "alc_1", Tenant: "red", GPUs: []string{"GPU-a"}, Mark: "-"}, uses[0])
}

// Whatever of the first holder is still there when the second one begins, in whichever order it was written down.
func TestAGPUInTwoHandsIsFound(t *testing.T) {
	t.Parallel()
	for _, late := range []string{
		"1772431205.000000 lingers v1 alc_1 red GPU-a -\n", // at the same moment
		"1772431205.100000 works v1 alc_1 red GPU-a -\n",
		"1772431209.000000 begins v3 alc_1 red GPU-a -\n", // it comes back
	} {
		for _, text := range []string{handedOver + late, late + handedOver} {
			found := readUses(t, text).TwoHands
			require.Len(t, found, 1, late)
			require.Contains(t, found[0], "GPU GPU-a: work of alc_1 (red) was there until 06:00:0")
			require.Contains(t, found[0], "that of alc_2 (blue) from 06:00:05.000 on")
		}
	}
	require.Empty(t, readUses(t, handedOver+"1772431205.100000 begins v3 alc_3 red GPU-c -\n").TwoHands, "another GPU")
	require.Len(t, readUses(t, handedOver+"1772431205.100000 begins v3 alc_3 blue GPU-b -\n").TwoHands, 1,
		"two allocations of one tenant are two holders")
}

func TestWhatOthersLeftIsFound(t *testing.T) {
	t.Parallel()
	found := readUses(t, handedOver+`1772431205.100000 finds v2 alc_2 blue GPU-a,GPU-b file:/tmp/mark.GPU-a.alc_1
1772431205.100001 finds v2 alc_2 blue GPU-a,GPU-b folder:alc_1
`).Uncleaned
	require.Equal(t, []string{"alc_2 (blue) on GPU GPU-a,GPU-b found 2 marks of others: " +
		"06:00:05.100 file:/tmp/mark.GPU-a.alc_1, 06:00:05.100 folder:alc_1"}, found)
}

// An audit that could not have found anything has found nothing out.
func TestAnAuditThatSawNothingIsRed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nobody":        {"", "0 commands ran on nodes and 0 GPUs were handed over: nothing was measured"},
		"nobody before": {"1772431200.000001 begins v1 alc_1 red GPU-a -\n", "1 commands ran on nodes and 0 GPUs"},
		"one tenant": {strings.ReplaceAll(handedOver, "blue", "red"),
			"2 commands ran on nodes and 0 GPUs were handed over"},
		"a search that finds nothing": {handedOver + "1772431205.100000 leaves v2 alc_2 blue GPU-a file:/tmp/x\n",
			"of marks of the kind file nobody saw even their own"},
	} {
		blind := readUses(t, c.text).Blind
		require.Len(t, blind, 1, name)
		require.Contains(t, blind[0], c.want, name)
	}
}

func TestLinesThatAreNotOfVisitorsAreRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"1772431200.000001 begins v1 alc_1 red GPU-a", "1772431200.1 begins v1 alc_1 red GPU-a -",
		"1772431200 begins v1 alc_1 red GPU-a -", "x.000001 begins v1 alc_1 red GPU-a -",
		"1772431200.000001 dances v1 alc_1 red GPU-a -", "",
	} {
		_, err := audit.ParseUses(strings.NewReader(handedOver + line + "\n"))
		require.ErrorContains(t, err, "line 9 of the visitors", line)
	}
}
