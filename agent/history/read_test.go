package history_test

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
)

type reader func(io.Reader, history.Options, func(history.Record) error) (history.Report, error)

func collectRecords(t *testing.T, read reader, o history.Options, text string) (
	[]history.Record, history.Report, error) {
	t.Helper()
	var records []history.Record
	report, err := read(strings.NewReader(text), o, func(r history.Record) error {
		records = append(records, r)
		return nil
	})
	require.Equal(t, report.Rows, report.Kept+report.Broken+report.Skipped)
	require.EqualValues(t, len(records), report.Kept)
	return records, report, err
}

const header = "job_id,user,group,submit_ts,duration_s,gpus,status\n"

func TestReadCSVReadsTheTraceSchema(t *testing.T) {
	t.Parallel()
	text := "\xef\xbb\xbfgpus,extra,job_id,group,submit_ts,duration_s,status\r\n" +
		"8,x,a1,lab,1504521041,2240194,Pass\r\n\r\n" +
		"1,\"y,z\",a2,,1504521042.5,,RUNNING"
	records, report, err := collectRecords(t, history.ReadCSV, history.Options{}, text)
	require.NoError(t, err)
	require.EqualValues(t, 2, report.Rows)
	require.Equal(t, []history.Record{
		{
			ID: history.Pseudonym(nil, "a1"), Tenant: "lab", Submitted: time.Unix(1504521041, 0).UTC(),
			Duration: 2240194 * time.Second, GPUs: 8, State: history.Completed, Nameless: true,
		},
		{
			ID: history.Pseudonym(nil, "a2"), Submitted: time.Unix(1504521042, 5e8).UTC(),
			GPUs: 1, State: history.Running, Nameless: true,
		},
	}, records)
}

func TestABrokenRowIsReportedAndTheRestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, row, field string }{
		{"no id", ",u,g,1504521041,5,1,", "job_id"},
		{"negative gpus", "a,u,g,1504521041,5,-1,", "gpus"},
		{"zero gpus", "a,u,g,1504521041,5,0,", "gpus"},
		{"huge gpus", "a,u,g,1504521041,5,100001,", "gpus"},
		{"half a gpu", "a,u,g,1504521041,5,0.5,", "gpus"},
		{"NaN gpus", "a,u,g,1504521041,5,NaN,", "gpus"},
		{"infinite gpus", "a,u,g,1504521041,5,inf,", "gpus"},
		{"no gpus", "a,u,g,1504521041,5,,", "gpus"},
		{"negative time", "a,u,g,-5,5,1,", "submit_ts"},
		{"huge time", "a,u,g,1e300,5,1,", "submit_ts"},
		{"word for a time", "a,u,g,yesterday,5,1,", "submit_ts"},
		{"negative duration", "a,u,g,1504521041,-5,1,", "duration_s"},
		{"zero duration", "a,u,g,1504521041,0,1,", "duration_s"},
		{"NaN duration", "a,u,g,1504521041,nan,1,", "duration_s"},
		{"huge duration", "a,u,g,1504521041,1e12,1,", "duration_s"},
		{"control character", "a,u,g\x07,1504521041,5,1,", "tenant"},
		{"too few fields", "a,u,g", ""},
		{"too many fields", "a,u,g,1504521041,5,1,,,", ""},
		{"stray quote", `"a,u,g,1504521041,5,1,`, ""},
		{"long line", strings.Repeat("a", history.MaxLine+1), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := header + c.row + "\nok,u,g,1504521041,5,1,\n"
			records, report, err := collectRecords(t, history.ReadCSV, history.Options{}, text)
			require.NoError(t, err)
			require.Len(t, records, 1)
			require.Equal(t, history.Pseudonym(nil, "ok"), records[0].ID)
			require.EqualValues(t, 1, report.Broken)
			require.EqualValues(t, 2, report.Errors[0].Line)
			require.Equal(t, c.field, report.Errors[0].Field)
			require.NotEmpty(t, report.Errors[0].Rule)
		})
	}
}

func TestOnlyTheFirstTwentyBrokenRowsAreDescribed(t *testing.T) {
	t.Parallel()
	_, report, err := collectRecords(t, history.ReadCSV, history.Options{}, header+strings.Repeat("x\n", 50))
	require.NoError(t, err)
	require.EqualValues(t, 50, report.Broken)
	require.Len(t, report.Errors, 20)
	require.EqualValues(t, 21, report.Errors[19].Line)
}

func TestAHeaderWithoutTheColumnsIsRefused(t *testing.T) {
	t.Parallel()
	var missing *history.HeaderError
	_, _, err := collectRecords(t, history.ReadCSV, history.Options{}, "job_id,when\na,b\n")
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{"submit_ts", "gpus"}, missing.Missing)
	_, _, err = collectRecords(t, history.ReadSacct, history.Options{},
		"JobID|Submit|State|JobName\n1|Unknown|RUNNING|x\n")
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{"AllocTRES or ReqTRES"}, missing.Missing)
	_, _, err = collectRecords(t, history.ReadSacct, history.Options{},
		"JobID|Submit|AllocTRES\n1|1504521041|gres/gpu=1\n")
	require.ErrorAs(t, err, &missing)
	require.ErrorContains(t, err,
		"no column JobName: without it Forewarm's own placeholders would count as your jobs; add it")
}

func TestReadJSONL(t *testing.T) {
	t.Parallel()
	text := `{"job_id":17,"group":"lab","submit_ts":1504521041,"duration_s":60,"gpus":"4","status":"FAILED","nodes":["a"]}
{"job_id":"x","submit_ts":1504521041,"gpus":1,"duration_s":null}
{"job_id":"x","submit_ts":1504521041,"gpus":[1]}
{"job_id":"x","submit_ts":1504521041,"gpus":true}
{"job_id":"x","submit_ts":NaN,"gpus":1}
[1]
{"job_id":"x","submit_ts":1504521041,"gpus":"NaN"}
`
	records, report, err := collectRecords(t, history.ReadJSONL, history.Options{}, text)
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.Equal(t, history.Pseudonym(nil, "17"), records[0].ID)
	require.Equal(t, 4, records[0].GPUs)
	require.Equal(t, history.Failed, records[0].State)
	require.EqualValues(t, 5, report.Broken)
	require.EqualValues(t, 3, report.Errors[0].Line)
}

//go:embed testdata/sacct.txt
var sacct string

func TestReadSacct(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	records, report, err := collectRecords(t, history.ReadSacct, history.Options{Zone: berlin}, sacct)
	require.NoError(t, err)
	require.Len(t, records, 4)
	require.EqualValues(t, 3, report.Skipped)
	require.EqualValues(t, 4, report.Broken)
	require.Equal(t, []string{"ended", "Submit", "TRES", ""}, faultFields(report))
	require.Equal(t, history.Record{
		ID: history.Pseudonym(nil, "12"), Tenant: "lab", GPUs: 4, State: history.Completed, Duration: time.Hour,
		Submitted: time.Date(2026, 7, 1, 7, 0, 0, 0, time.UTC), Started: time.Date(2026, 7, 1, 7, 5, 0, 0, time.UTC),
		Ended: time.Date(2026, 7, 1, 8, 5, 0, 0, time.UTC),
	}, withoutHashes(records)[0])
	require.Equal(t, "gpu", records[1].Tenant)
	require.Equal(t, 3, records[1].GPUs)
	require.True(t, records[1].Started.IsZero())
	require.Equal(t, history.Cancelled, records[2].State)
	require.Equal(t, 20*time.Minute, records[3].Ended.Sub(records[3].Started))
}

func faultFields(r history.Report) []string {
	var names []string
	for _, e := range r.Errors {
		names = append(names, e.Field)
	}
	return names
}

func TestGzipIsFoundByItsMagic(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, header+"a,u,g,1504521041,5,1,\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	records, _, err := collectRecords(t, history.ReadCSV, history.Options{}, packed.String())
	require.NoError(t, err)
	require.Len(t, records, 1)

	cut := packed.String()[:packed.Len()-6]
	_, _, err = collectRecords(t, history.ReadCSV, history.Options{}, cut)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestTheCallersErrorStopsTheReading(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	calls := 0
	_, err := history.ReadCSV(strings.NewReader(header+strings.Repeat("a,u,g,1504521041,5,1,\n", 9)), history.Options{},
		func(history.Record) error { calls++; return enough })
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, calls)
}

func TestTheSaltKeysThePseudonym(t *testing.T) {
	t.Parallel()
	a, b := history.Pseudonym([]byte("one"), "job-7"), history.Pseudonym([]byte("two"), "job-7")
	require.NotEqual(t, a, b)
	require.NotContains(t, a, "job")
	require.Equal(t, a, history.Pseudonym([]byte("one"), "job-7"))
}

func fuzzReader(f *testing.F, read reader, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kept := int64(0)
		report, _ := read(strings.NewReader(text), history.Options{}, func(r history.Record) error {
			kept++
			return r.Validate()
		})
		if report.Rows != report.Kept+report.Broken+report.Skipped || kept != report.Kept {
			t.Fatalf("the counts do not add up: %+v, handed over %d", report, kept)
		}
		if len(report.Errors) > 20 {
			t.Fatalf("%d errors", len(report.Errors))
		}
	})
}

// The control plane's own history has its rows, and its arrays.
func TestForewarmsHistoryIsRead(t *testing.T) {
	t.Parallel()
	line := `{"job_id":"job_1","group":"acme","user":"ann@example.com","submit_ts":1504521041,"start_ts":1504521100,` +
		`"duration_s":60,"gpus":2,"status":"timeout","name":"sweep","comment":"job","array":"%s","pool":"lab"}` + "\n"
	records, report, err := collectRecords(t, history.ReadJSONL, history.Options{},
		fmt.Sprintf(line+line+line, "arr_1", "arr_1", "arr_2")+`{"job_id":"alc_1","group":"acme","submit_ts":1504521041,`+
			`"gpus":8,"status":"pending","name":"","comment":"allocation","pool":"lab"}`)
	require.NoError(t, err)
	require.Zero(t, report.Broken)
	require.Equal(t, []any{"acme", 2, history.TimedOut, time.Minute, false}, []any{records[0].Tenant, records[0].GPUs,
		records[0].State, records[0].Duration, records[0].Nameless})
	require.Equal(t, records[0].Array, records[1].Array)
	require.NotEqual(t, records[0].Array, records[2].Array)
	require.Equal(t, []any{uint32(0), history.Pending, false}, []any{records[3].Array, records[3].State,
		records[3].Nameless})
}

func FuzzReadCSV(f *testing.F) {
	fuzzReader(f, history.ReadCSV, header+"a,u,g,1504521041,5,1,\n", header+"\"a", "job_id,submit_ts,gpus\nx,1e9,1e5\n")
}

func FuzzReadJSONL(f *testing.F) {
	fuzzReader(f, history.ReadJSONL, `{"job_id":"x","submit_ts":1504521041,"gpus":1}`, `{"gpus":{}}`, `{"gpus":-1e999}`)
}

func FuzzReadSacct(f *testing.F) {
	fuzzReader(f, history.ReadSacct,
		"JobID|Submit|Start|End|AllocTRES|JobName\n1|2026-07-01T09:00:00|Unknown|None|gres/gpu=1|x|y\n",
		"JobID|Submit|ReqTRES|JobName\n1|1504521041|gres/gpu:a=9223372036854775807,gres/gpu:b=1|x\n")
}
