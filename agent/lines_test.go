package agent_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/llm/scripted"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
)

// newReader returns an agent whose model is given five lines at most, and what the model was asked.
func newReader(t testing.TB) (bench, *[]string) {
	t.Helper()
	return newReaderOf(t, func(model http.Handler) http.Handler { return model }, nil)
}

// newReaderOf is newReader with a model behind something, and a configuration that is changed.
func newReaderOf(t testing.TB, behind func(http.Handler) http.Handler, change func(*agent.Config)) (bench, *[]string) {
	t.Helper()
	asked := &[]string{}
	say := func(user string) string {
		*asked = append(*asked, user)
		return `{"records":[]}`
	}
	client, err := llm.NewClient(llm.Config{BaseURL: "http://model.test/v1", Model: "m"},
		&http.Client{Transport: memory{behind(&scripted.Server{Respond: say})}})
	require.NoError(t, err)
	caps := llm.BudgetConfig{Caps: llm.Caps{Calls: 9, Tokens: 1e6, Cost: money.USD}}
	budget, err := llm.NewBudget(caps, llm.BudgetState{}, clock.NewManual(today))
	require.NoError(t, err)
	model, err := predict.NewForecaster(predict.ForecasterConfig{Name: "m", MaxLines: 5}, client, budget,
		rand.New(rand.NewSource(1)))
	require.NoError(t, err)
	return newBench(t, func(c *agent.Config) {
		c.Predict, err = predict.New(predict.Config{
			Series: forecast.Config{Period: 24 * time.Hour, Bin: width, Window: width},
			Window: width, Horizon: 5 * width, MaxGPUs: 16,
		}, model)
		require.NoError(t, err)
		if change != nil {
			change(c)
		}
	}), asked
}

// logItems are lines of one log.
func logItems(texts ...string) (items []source.Item) {
	for _, text := range texts {
		items = append(items, source.Item{Line: &source.Line{Source: "train.log", Text: text}})
	}
	return items
}

func numberedLines(from, to int) (texts []string) {
	for i := from; i < to; i++ {
		texts = append(texts, fmt.Sprintf("2026-07-01T09:00:00Z INFO line %d of the log", i))
	}
	return texts
}

// The model gets the newest lines, of whichever batch, each without its secrets: also those of a secret that began in a
// line that was not kept.
func TestTheModelGetsTheNewestLines(t *testing.T) {
	t.Parallel()
	b, asked := newReader(t)
	b.handleItems(t, logItems(numberedLines(0, 1000)...)...)
	b.handleItems(t, logItems("-----BEGIN RSA PRIVATE KEY-----")...)
	key := []string{"MIIEow", "c2Vjb25k", "dGhpcmQ", "Zm91cnRo", "ZmlmdGg"}
	b.handleItems(t, logItems(append(append(key, "-----END RSA PRIVATE KEY-----"), numberedLines(1000, 1003)...)...)...)
	b.handleItems(t, logItems("mail bob.smith@example.com")...)
	b.clock.Set(today.Add(time.Hour))
	_, err := b.Step(t.Context())
	require.NoError(t, err)
	require.Len(t, *asked, 1)
	got := (*asked)[0]
	for _, want := range []string{"[redacted:private-key]", "line 1000 of", "line 1002 of", "mail [redacted:email]"} {
		require.Equal(t, 1, strings.Count(got, want), "%s in %s", want, got)
	}
	for _, secret := range append(key, "line 999 of", "PRIVATE KEY", "bob.smith") {
		require.NotContains(t, got, secret)
	}
}

// Lines that no question can hold are not redacted, which is seen by what that would take.
func TestLinesThatCannotBeSentCostLittle(t *testing.T) {
	items := logItems(numberedLines(0, 5000)...)
	reader, _ := newReader(t)
	statistics := newBench(t, nil)
	for name, b := range map[string]bench{"with a model": reader, "without": statistics} {
		allocations := testing.AllocsPerRun(1, func() { b.handleItems(t, items...) })
		require.Less(t, allocations, float64(2*len(items)), name)
	}
}

// Lines of a binary file that matches the pattern of a log do not reach the model, which is told once.
func TestBinaryLinesAreLeftOut(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	b, asked := newReaderOf(t, func(model http.Handler) http.Handler { return model },
		func(c *agent.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	for range 2 {
		b.handleItems(t, logItems("PK\x03\x04 weights\x00\x00", "tensor \xff\xfe data", "epoch 3 of 90 begins")...)
	}
	b.clock.Set(today.Add(time.Hour))
	_, err := b.Step(t.Context())
	require.NoError(t, err)
	require.Len(t, *asked, 1)
	require.Contains(t, (*asked)[0], "epoch 3 of 90 begins")
	require.NotContains(t, (*asked)[0], "weights")
	require.NotContains(t, (*asked)[0], "tensor")
	require.Equal(t, 1, strings.Count(log.String(), "lines with NUL bytes are left out"), log)
}
