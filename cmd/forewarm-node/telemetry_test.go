package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// What nvidia-smi does not tell comes from the exporter that a variable names, and says so.
func TestLookReadsADCGMExporter(t *testing.T) {
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE DCGM_FI_PROF_SM_ACTIVE gauge\n" +
			`DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-1"} 0.25` + "\n"))
	}))
	defer exporter.Close()
	smi := "#!/bin/sh\necho '0, GPU-1, 00000000:3B:00.0, 570.86.10, 81920, 1024, 37, 12, 45, 123.45, 400.00, 1410, " +
		"1593, 0x0, 0, 3, 7, 9, 1, 4, 8, 16, Disabled, NVIDIA A100-SXM4-80GB'\n"
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(smi), 0o755)) //nolint:gosec // a program
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	code, out := command(t.Context(), "", map[string]string{"FOREWARM_NODE_DCGM_EXPORTER": exporter.URL,
		"FOREWARM_NODE_SOURCE": "nvidia-smi"}, "look", "-o", "json")
	require.Zero(t, code, out)
	var look contract.NodeLook
	require.NoError(t, json.Unmarshal([]byte(out), &look))
	require.InDelta(t, 25, *look.GPUs[0].SMActivity, 0)
	require.Equal(t, []string{"sm_activity_percent"}, look.GPUs[0].FromDCGM)
	require.Equal(t, 37, *look.GPUs[0].Utilization)
	exporter.Close()
	code, out = command(t.Context(), "", nil, "look", "--source", "nvidia-smi", "--dcgm-exporter", exporter.URL)
	require.Zero(t, code, out)
	require.Contains(t, out, "the DCGM exporter: ")
}
