package show_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/backtest"
	"github.com/forewarm/forewarm/agent/backtest/show"
	"github.com/forewarm/forewarm/agent/history"
)

var update = flag.Bool("update", false, "write the golden files anew")

// testInput is four weeks of a group that works in the morning and one that works at
// night, with a wait that the history tells, two jobs that still run and one that
// never ran.
func testInput() backtest.Input {
	monday := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	in := backtest.Input{Report: history.Report{Broken: 2}}
	add := func(tenant string, at time.Time, took time.Duration, gpus int, state history.State) {
		r := history.Record{
			ID: fmt.Sprintf("job-%04d", len(in.Records)), Tenant: tenant, Submitted: at, Duration: took, GPUs: gpus,
			State: state,
		}
		if tenant == "lab" {
			r.Started = at.Add(time.Duration(len(in.Records)%5) * time.Minute)
			r.Ended = r.Started.Add(took)
		}
		in.Records = append(in.Records, r)
	}
	for day := range 28 {
		at := monday.Add(time.Duration(24*day) * time.Hour)
		for i := range 6 {
			if day%7 < 5 {
				add("lab", at.Add(9*time.Hour+time.Duration(i*(11+day%4))*time.Minute), 40*time.Minute, 1+i%3,
					history.Completed)
			}
		}
		add("night", at.Add(time.Duration(20+day%3)*time.Hour), 5*time.Hour, 4, history.Completed)
	}
	last := monday.Add(28 * 24 * time.Hour)
	add("night", last, 0, 4, history.Running)
	add("night", last, 0, 4, history.Running)
	add("night", last, 0, 4, history.Pending)
	in.Report.Kept = int64(len(in.Records))
	in.Report.Rows = in.Report.Kept + 2
	return in
}

func newTestReport(t *testing.T, c backtest.Config) backtest.Report {
	t.Helper()
	r, err := backtest.Run(t.Context(), testInput(), c)
	require.NoError(t, err)
	return r
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "after a change that is meant: go test ./agent/backtest/show -update")
}

func TestText(t *testing.T) {
	t.Parallel()
	var plain, priced bytes.Buffer
	require.NoError(t, show.Text(&plain, newTestReport(t, backtest.Config{}), false))
	compareGolden(t, "table.txt", plain.Bytes())
	require.NoError(t, show.Text(&priced, newTestReport(t, backtest.Config{GPUPrice: 2.1, WaitWorth: 100}), true))
	compareGolden(t, "priced.txt", priced.Bytes())
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := newTestReport(t, backtest.Config{GPUPrice: 2.1, WaitWorth: 100})
	require.NoError(t, show.JSON(&b, r))
	compareGolden(t, "report.json", b.Bytes())
	var back backtest.Report
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, r.Policies, back.Policies)
}

func renderPage(t *testing.T, r backtest.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, show.HTML(&b, r))
	return b.String()
}

var (
	styleOf  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	policyOf = regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`)
	svgOf    = regexp.MustCompile(`(?s)<svg .*?</svg>`)
)

func TestThePageNeedsNothingElse(t *testing.T) {
	t.Parallel()
	text := renderPage(t, newTestReport(t, backtest.Config{}))
	require.Equal(t, text, renderPage(t, newTestReport(t, backtest.Config{})), "the same bytes")
	policy := html.UnescapeString(policyOf.FindStringSubmatch(text)[1])
	sum := sha256.Sum256([]byte(styleOf.FindStringSubmatch(text)[1]))
	require.Contains(t, policy, "default-src 'none'")
	require.Contains(t, policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'",
		"or the browser shows the page without style")
	for _, outside := range []string{"<script", "http:", "https:", "//", "url(", "@import", " src=", " href=",
		" style=", " onload"} {
		require.NotContains(t, text, outside)
	}
	drawings := svgOf.FindAllString(text, -1)
	require.Len(t, drawings, 3, "frontier, week and calibration")
	for _, d := range drawings {
		wellFormed(t, d)
		require.NotContains(t, d, "NaN")
		require.NotContains(t, d, "Inf")
	}
	for _, class := range regexp.MustCompile(`class="([a-z_ 0-9]+)"`).FindAllStringSubmatch(strings.Join(drawings, ""),
		-1) {
		for _, name := range strings.Fields(class[1]) {
			require.True(t, name == "s5" || strings.Contains(text, "."+name+" "), "the style sheet does not know %q",
				name)
		}
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err != nil {
			require.True(t, errors.Is(err, io.EOF), "%v", err)
			return
		}
	}
}

func TestWhatComesFromElsewhereIsEscaped(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[2J</title></text><script>alert(1)</script>\"'"
	r := newTestReport(t, backtest.Config{})
	r.Settings.Zone, r.Advice.Text = hostile, []string{hostile, hostile}
	r.Advice.Use = `x" onclick="alert(1)`
	for i := range r.Policies {
		r.Policies[i].Label = hostile
	}
	for i := range r.Frontier {
		r.Frontier[i].Setting = hostile
	}
	for i := range r.WeakSpots {
		r.WeakSpots[i].Label = hostile
	}
	text := renderPage(t, r)
	require.NotContains(t, text, "<script")
	require.NotContains(t, text, `x" onclick`)
	for _, d := range svgOf.FindAllString(strings.ReplaceAll(text, "\x1b", ""), -1) {
		wellFormed(t, d)
	}
	var table bytes.Buffer
	require.NoError(t, show.Text(&table, r, true))
	for _, line := range strings.Split(table.String(), "\n") {
		require.NotContains(t, line, "\x1b", "nothing steers the terminal")
	}
}

func TestAReportOfAlmostNothingCanBeShown(t *testing.T) {
	t.Parallel()
	in := testInput()
	in.Records = in.Records[:1]
	r, err := backtest.Run(t.Context(), in, backtest.Config{})
	require.NoError(t, err)
	text := renderPage(t, r)
	require.Contains(t, text, "Nothing can be said: the history is too short, with too few jobs")
	require.NotContains(t, text, "NaN")
	require.Contains(t, renderPage(t, backtest.Report{}), "Nothing was said")
	require.NoError(t, show.Text(io.Discard, backtest.Report{}, true))
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAWriterThatFailsIsTold(t *testing.T) {
	t.Parallel()
	r := newTestReport(t, backtest.Config{})
	require.ErrorIs(t, show.Text(broken{}, r, false), io.ErrClosedPipe)
	require.ErrorIs(t, show.JSON(broken{}, r), io.ErrClosedPipe)
	require.ErrorIs(t, show.HTML(broken{}, r), io.ErrClosedPipe)
}

// Headers wrap and tables scroll beside a first column that stays, so that no width hides the last column, the cost.
func TestThePageFitsNarrowScreens(t *testing.T) {
	t.Parallel()
	css, err := os.ReadFile("page.css")
	require.NoError(t, err)
	for _, rule := range []string{
		`thead th \{[^}]*white-space: normal`, `\.wide \{ overflow-x: auto`, `th:first-child \{ position: sticky`,
		`@media \(max-width: 48rem\) \{[^@]*tbody th \{ white-space: normal`,
	} {
		require.Regexp(t, rule, string(css))
	}
}
