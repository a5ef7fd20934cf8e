//go:build clouds

package aws_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws"
	"github.com/forewarm/forewarm/provisioners/bootscript"
)

// withDaemon is a spec with what a daemon needs to join.
func withDaemon(kind, sum string) provisioners.Spec {
	spec := testSpec(kind)
	spec.Daemon = provisioners.Daemon{URL: "https://forewarm.example", Token: "secret",
		Programs: provisioners.DaemonPrograms{AMD64: provisioners.DaemonProgram{
			URL: "https://forewarm.example/download/forewarm-node-linux-amd64", SHA256: sum}}}
	return spec
}

func TestMachinesStartTheDaemonOfTheirNode(t *testing.T) {
	t.Parallel()
	for source, want := range map[bootscript.Source][]string{
		"":                  nil,
		bootscript.Download: {"join_token='secret'", "node='nod_1'", "sum='5eed'", "FOREWARM_UNCLAIMED_S=3600"},
		bootscript.Image:    {"join_token='secret'", "from='image'", "FOREWARM_UNCLAIMED_S=3600"},
	} {
		s := newSite(t, regionConfig())
		s.config.Daemon = source
		p := s.openProvisioner(t)
		require.Equal(t, want != nil, p.StartsDaemons())
		require.Equal(t, source == bootscript.Download, p.DownloadsDaemons())
		first, err := p.Create(t.Context(), "token-1", withDaemon("p5", "5eed"))
		require.NoError(t, err)
		text := s.Bill()[0].UserData
		for _, part := range want {
			require.Contains(t, text, part)
		}
		if want == nil {
			require.NotContains(t, text, "secret", "nobody asked for it")
		}
		again, err := p.Create(t.Context(), "token-1", withDaemon("p5", "another"))
		require.NoError(t, err, "another version of the control plane asks for the same machine")
		require.Equal(t, first.ID, again.ID)
	}
}

func TestADaemonThatCannotBeDownloaded(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.config.Daemon = bootscript.Download
	spec := withDaemon("p5", "")
	spec.Daemon.Programs = provisioners.DaemonPrograms{}
	_, err := s.openProvisioner(t).Create(t.Context(), "token-1", spec)
	requireKind(t, provisioners.KindBadSpec, err)
	require.ErrorContains(t, err, "no program of the daemon to hand out")
	require.Zero(t, s.Calls("RunInstances"))
}

func TestUserDataThatLeavesNoRoomForTheDaemon(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.config.UserDataFile = filepath.Join(t.TempDir(), "user-data")
	require.NoError(t, os.WriteFile(s.config.UserDataFile, []byte("#!/bin/sh\n"+strings.Repeat("#", 8<<10)), 0o600))
	_, err := aws.New(s.config, s.clock)
	require.NoError(t, err)
	s.config.Daemon = bootscript.Download
	_, err = aws.New(s.config, s.clock)
	require.ErrorContains(t, err, "EC2 takes 16384")
}
