package predict

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/forecast"
)

func testEntry() Entry {
	return Entry{
		ID: "fct_1", Tenant: "secret-project", Issued: from.Add(-time.Minute), Start: from, End: from.Add(time.Hour),
		Source: LLM, Reason: DataReady,
		Forecast: forecast.Summary{P10: 1, P50: 2, P90: 3, Any: 0.5, Mean: 2.5}, Model: "Qwen/Qwen3 32B",
		PromptHash: strings.Repeat("a", 64),
	}
}

func TestARowIsItsEntryWithoutNames(t *testing.T) {
	t.Parallel()
	rows := Rows{PoolID: "pol_1", Secret: []byte("salt")}
	e := testEntry()
	got := rows.Forecast(e)
	require.Equal(t, contract.AgentForecast{
		ID: got.ID, PoolID: "pol_1", Source: "llm", ReasonCode: contract.ReasonAnnouncedWork, IssuedAt: e.Issued,
		Start: e.Start, End: e.End,
		GPUs: contract.Quantiles{P10: 1, P50: 2, P90: 3, Mean: 2.5}, Probability: 0.5, Model: "qwen/qwen3-32b",
		PromptHash: e.PromptHash,
	}, got)
	closed := rows.Outcome(Outcome{ID: e.ID, Source: e.Source, Closed: e.End, GPUs: 3})
	require.Equal(t, contract.AgentOutcome{ID: got.ID, GPUs: 3, CountedAt: e.End}, closed)
	require.Equal(t, got.ID, rows.Forecast(e).ID)
	other := e
	other.Source = Statistics
	require.NotEqual(t, got.ID, rows.Forecast(other).ID, "two sources may speak of one window")
	require.NotEqual(t, got.ID, Rows{PoolID: "pol_1", Secret: []byte("another")}.Forecast(e).ID, "it cannot be guessed")
}

func TestARowTellsWhatEvidenceDid(t *testing.T) {
	t.Parallel()
	e := testEntry()
	require.Nil(t, Rows{}.Forecast(e).Influence)
	e.Statement = &Statement{Stated: 0.9, Weight: 0.25, Statistics: forecast.Summary{Any: 0.1},
		Evidence: strings.Repeat("b", 64)}
	got := Rows{Secret: []byte("salt")}.Forecast(e)
	require.Equal(t, 0.25, *got.Influence)
	require.Equal(t, 0.1, *got.BaselineProbability)
	require.Regexp(t, "^[0-9a-f]{64}$", got.EvidenceHash)
	require.NotEqual(t, e.Statement.Evidence, got.EvidenceHash)
	require.NotEqual(t, got.EvidenceHash, Rows{Secret: []byte("pepper")}.Forecast(e).EvidenceHash)
}

// Whatever a model is called, and whatever reason there is, what leaves has the
// form that the contract demands.
func TestARowHasTheContractsForm(t *testing.T) {
	t.Parallel()
	field := func(name string) reflect.StructTag {
		f, ok := reflect.TypeFor[contract.AgentForecast]().FieldByName(name)
		require.True(t, ok)
		return f.Tag
	}
	model := regexp.MustCompile(field("Model").Get("pattern"))
	id := regexp.MustCompile(field("ID").Get("pattern"))
	rapid.Check(t, func(t *rapid.T) {
		e := testEntry()
		e.Model = rapid.StringN(1, 100, -1).Draw(t, "model")
		e.Reason = rapid.SampledFrom(append(Reasons(), Reason(rapid.String().Draw(t, "words")))).Draw(t, "reason")
		e.ID = rapid.String().Draw(t, "id")
		got := Rows{Secret: []byte(rapid.String().Draw(t, "secret"))}.Forecast(e)
		require.Regexp(t, model, got.Model)
		require.Regexp(t, id, got.ID)
		require.Contains(t, contract.ReasonCodes, got.ReasonCode)
	})
	for _, s := range []Source{Statistics, LLM} {
		require.Contains(t, contract.ForecastSources, string(s))
	}
}
