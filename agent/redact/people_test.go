package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/redact"
)

// TestPeopleAndMachinesAfterWhatIntroducesThem are cut, and the times and counts beside them stay.
func TestPeopleAndMachinesAfterWhatIntroducesThem(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{})
	for _, tc := range []struct{ line, gone, stays string }{
		{"author=Ann O'Brien gpus=4", "Ann O'Brien Brien", "gpus=4"},
		{"meeting with Dr. Émilie Dupont-Lévy Friday 9:00, 16 GPUs", "Émilie Dupont Lévy", "Friday 9:00, 16 GPUs"},
		{"Mr. Smith and Mrs. van der Berg start a sweep", "Smith Berg", "start a sweep"},
		{"Prof. J. Ünal's run on 8 GPUs", "Ünal", "on 8 GPUs"},
		{"patient Maria de la Cruz, scan at 10:00", "Maria Cruz", "scan at 10:00"},
		{"customer Contoso wants 32 GPUs on Monday", "Contoso", "wants 32 GPUs on Monday"},
		{"demo for customer Fabrikam Monday 9:00", "Fabrikam", "Monday 9:00"},
		{"contact: Jürgen Müller, ext 12", "Jürgen Müller", "ext 12"},
		{"owner Søren Kierkegård", "Søren Kierkegård", "owner"},
		{"assigned to Ann Lee and Bob Ng for epoch 3", "Ann Lee Bob Ng", "for epoch 3"},
		{"cc Ann, Bob, Zoë; sweep at 9", "Ann Bob Zoë", "sweep at 9"},
		{"cc: bob@x.org, Ann Lee", "Ann Lee", "cc: "},
		{"Dr.Müller runs", "Müller", "runs"},
		{"customer=contoso gpus=8", "contoso", "gpus=8"},
		{"Termin mit Frau Groß um 9 Uhr", "Groß", "um 9 Uhr"},
		{"node gpubox17 is up", "gpubox17", "is up"},
		{"connected to node gpubox17 and node gpubox18", "gpubox17 gpubox18", "connected to node"},
		{"nodes rack-a, rack-b and box3 are drained", "rack-a rack-b box3", "are drained"},
		{"server db-primary lost machine ws42.", "db-primary ws42", "lost machine"},
		{"host ml-lab is slow", "ml-lab", "is slow"},
	} {
		got, _ := r.Redact(tc.line)
		for _, gone := range strings.Fields(tc.gone) {
			require.NotContains(t, got.String(), gone, tc.line)
		}
		require.Contains(t, got.String(), tc.stays, tc.line)
	}
	for _, line := range []string{
		"meeting with 8 GPUs", "node count 4", "Server version 15;Timeout=3", "machine learning run 4",
		"demo for Monday 9:00", "server v2 re-started", "node rank3 joined", "assigned to 8 GPUs",
		"host re-joined the pool", "contact: none", "customer Training run of 8 GPUs starts Friday",
	} {
		got, _ := r.Redact(line)
		require.Equal(t, line, got.String())
	}
}
