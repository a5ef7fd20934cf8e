package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/placement"
)

// What each condition says of nodes with and without the label.
func TestTermsOfLabels(t *testing.T) {
	t.Parallel()
	nvme, hdd := placement.NewSet("disk", "disk=nvme", "zone", "zone=a"), placement.NewSet("disk", "disk=hdd")
	none := placement.NewSet("zone", "zone=a")
	for text, want := range map[string]struct {
		written         string
		nvme, hdd, none bool
	}{
		"disk":                  {"disk", true, true, false},
		"!disk":                 {"!disk", false, false, true},
		"disk=nvme":             {"disk=nvme", true, false, false},
		"disk!=nvme":            {"disk!=nvme", false, true, true},
		"disk in (ssd, nvme)":   {"disk in (nvme,ssd)", true, false, false},
		"disk notin (ssd,nvme)": {"disk notin (nvme,ssd)", false, true, true},
		"disk in (nvme)":        {"disk=nvme", true, false, false},
		"disk  in  ( nvme )":    {"disk=nvme", true, false, false},
	} {
		term, ok := placement.ParseTerm(text)
		require.True(t, ok, text)
		require.Equal(t, want.written, term.String(), text)
		for _, written := range []string{text, term.String()} {
			covers := func(labels placement.Set) bool {
				_, all := labels.Covers(placement.NewSet(written))
				return all
			}
			require.Equal(t, []bool{want.nvme, want.hdd, want.none}, []bool{covers(nvme), covers(hdd), covers(none)}, written)
		}
	}
	for _, text := range []string{"", "=a", "!", "!=a", "disk in", "disk in nvme", "disk in (", "disk in ()",
		"disk on (a)", "disk in (a))", "disk in (a", "in (a)", "disk in (a,,b)", "a b", "a=b=c", "!a=b", "disk in (a=b)"} {
		_, ok := placement.ParseTerm(text)
		require.False(t, ok, text)
	}
}
