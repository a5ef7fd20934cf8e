package slurm

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners"
)

// feed writes a text as a command would, in pieces of any size.
func feed(t *testing.T, r *rows, text string, piece int) {
	t.Helper()
	for len(text) > 0 {
		n := min(piece, len(text))
		written, err := r.Write([]byte(text[:n]))
		require.NoError(t, err)
		require.Equal(t, n, written)
		text = text[n:]
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	for _, piece := range []int{1, 7, 4096} {
		var got []string
		r := commands{mostRows: 10}.newRows(2, func(row []string) error {
			got = append(got, strings.Join(row, "|"))
			if row[0] == "odd" {
				return errors.New("it is odd")
			}
			return nil
		})
		line := func(cells ...string) string { return strings.Join(cells, r.separator) + r.separator + "\n" }
		feed(t, r, line("1", "x ")+line("odd", "\ny\x1fz")+line("3", ""), piece)
		require.Equal(t, []string{"1|x", "odd|\ny\x1fz", "3|"}, got)
		require.True(t, r.isWhole())
		require.Equal(t, 1, r.strange)
		require.EqualError(t, r.first, "it is odd")
		feed(t, r, "4"+r.separator+"x", piece)
		require.False(t, r.isWhole())
	}
}

// A listing that has no end is read up to a limit, and the command is ended.
func TestTooManyRows(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*rows){
		"rows":  func(r *rows) { r.mostRows = 3 },
		"bytes": func(r *rows) { r.mostBytes = 40 },
	} {
		read, stopped := 0, 0
		r := commands{mostRows: 10}.newRows(1, func([]string) error { read++; return nil })
		limit(r)
		r.endWith(func() { stopped++ })
		for range 100 {
			feed(t, r, "x"+r.separator+"\n", 5)
		}
		require.InDelta(t, 3, read, 1, name)
		require.Equal(t, 1, stopped, name)
		require.True(t, r.hadEnough(), name)
		require.False(t, r.isWhole(), name)
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	at := time.Unix(1795461783, 0).UTC()
	for _, m := range []mark{{at: at}, {at: at, id: "4711_3@1795461700"}, {at: at, id: "4711_*@1795461700"},
		{at: at, id: "12+1@1795461700"}} {
		got, err := parseMark(m.text())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	for _, text := range []provisioners.Mark{"slurm1-", "slurm1-0", "slurm1-1-x", "slurm1-1-2@3\n", "slurm2-1"} {
		_, err := parseMark(text)
		require.ErrorIs(t, err, provisioners.ErrForeignMark, text)
	}
}

func TestClockAhead(t *testing.T) {
	t.Parallel()
	before := time.Unix(1000, 300e6)
	after := before.Add(400 * time.Millisecond)
	for config, want := range map[string]time.Duration{
		"Configuration data as of 1000\nX = 1\n":         0,
		"Configuration data as of 999\n":                 -300 * time.Millisecond,
		"Configuration data as of 1001\n":                300 * time.Millisecond,
		"Configuration data as of 1600\n":                599*time.Second + 300*time.Millisecond,
		"Configuration data as of 2026-11-23T22:00:00\n": 0, "": 0,
	} {
		require.Equal(t, want, clockAhead(config, before, after), config)
	}
}

// More jobs than can be read are no reason to fail: those that were read count.
func TestAQueueWithoutEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, forklock.WriteProgram(filepath.Join(dir, "squeue"), `#!/bin/sh
for last; do :; done
end=${last%%,*}
end=${end#--Format=JobID:0}
i=0
while :; do
	i=$((i + 1))
	for cell in $i $i RUNNING None ada vision gpu 1795461783 1795461783 1795461790 N/A e1 1 1 gres/gpu=4 \
		N/A N/A N/A OK 8; do
		printf '%s%s' "$cell" "$end"
	done
	echo
done
`))
	c := newCommands(Config{BinDir: dir, Timeout: time.Minute}.WithDefaults())
	c.mostRows = 50
	q, err := c.listQueue(t.Context())
	require.NoError(t, err)
	require.Len(t, q.rows, 50)
	require.False(t, q.cut)
	require.Equal(t, []string{"squeue lists more than 50 jobs, and the others were not read"}, q.gaps)
}
