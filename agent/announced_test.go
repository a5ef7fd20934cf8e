package agent_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/llm/scripted"
)

// What the model announced is told once, with its chance by the source's record, whether it is held and why not.
func TestAnnouncementsAreToldOnce(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	log := &bytes.Buffer{}
	l.logger = slog.New(slog.NewTextHandler(log, nil))
	l.restartAgent(t)
	held := false
	for range 3 {
		log.Reset()
		rep := l.playMorning(t, true)
		require.Equal(t, 1, strings.Count(log.String(), "the model announced 4 GPUs from"), log)
		require.Equal(t, 1, strings.Count(log.String(), "the model announces 4 GPUs from"), log)
		require.Contains(t, log.String(), "whether they are held is decided at ")
		require.Contains(t, log.String(), "with a chance of 0.90, which by its record is 0.")
		if len(rep.Prediction.Holds) == 0 {
			require.Contains(t, log.String(), "hold none: ")
			continue
		}
		held = true
		require.Contains(t, log.String(), "hold 4 GPUs from")
		require.Contains(t, rep.Why, "as the model announced (announced, with trust 0.")
		require.NotContains(t, rep.Why, "hold none")
	}
	require.True(t, held)
}

// Before any job was seen nothing bounds what may be announced, so nothing is held; that is told, once.
func TestAnAnnouncementBeforeAnyJobIsTold(t *testing.T) {
	t.Parallel()
	l := &listener{dir: t.TempDir(), now: today}
	log := &bytes.Buffer{}
	l.logger = slog.New(slog.NewTextHandler(log, nil))
	l.restartAgent(t)
	l.playMorning(t, false)
	require.Equal(t, 1, strings.Count(log.String(), "hold none: no job was seen yet"), log)
}

// Lines that nobody answered are asked again with those that came since, the newest as many as a question holds. The
// model is left alone for as long as it says.
func TestLinesThatNobodyAnsweredAreAskedAgain(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	var refuse bool
	asked := 0
	b, questions := newReaderOf(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if refuse {
				w.Header().Set("Retry-After", "300")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, func(c *agent.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	step := func(after time.Duration) {
		b.clock.Set(today.Add(after))
		_, err := b.Step(t.Context())
		require.NoError(t, err)
	}
	b.handleItems(t, logItems(numberedLines(0, 4)...)...)
	refuse = true
	step(time.Hour)
	require.Equal(t, 1, asked)
	require.Contains(t, log.String(), "paused_until="+today.Add(time.Hour+5*time.Minute).Format(time.RFC3339))
	require.Contains(t, log.String(), "lines_kept=4")

	refuse = false
	step(time.Hour + 2*time.Minute)
	require.Equal(t, 1, asked, "it is left alone for as long as it said")
	b.handleItems(t, logItems(numberedLines(4, 7)...)...)
	step(time.Hour + 6*time.Minute)
	require.Len(t, *questions, 1)
	for i, line := range numberedLines(0, 7) {
		require.Equal(t, i >= 2, strings.Contains((*questions)[0], line), line)
	}
	step(2 * time.Hour)
	require.Len(t, *questions, 1, "what was answered is not asked again")
}

// While the breaker is open the model is not asked, its lines wait, and the log says until when.
func TestLinesWaitWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	asked := 0
	b, _ := newReaderOf(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(http.StatusServiceUnavailable)
		})
	}, func(c *agent.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	b.handleItems(t, logItems("a sweep of 8 GPUs begins at ten")...)
	for minute := range 8 {
		b.clock.Set(today.Add(time.Hour + time.Duration(minute)*time.Minute))
		_, err := b.Step(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, 3, asked)
	require.Equal(t, 1, strings.Count(log.String(), "kind=breaker"), log)
	require.Contains(t, log.String(), "paused_until="+today.Add(73*time.Minute).Format(time.RFC3339)+" lines_kept=1")
}

// A wrong answer is an answer: it gets its second try, and its lines are not kept.
func TestLinesOfAWrongAnswerAreNotAskedAgain(t *testing.T) {
	t.Parallel()
	asked := 0
	b, _ := newReaderOf(t, func(http.Handler) http.Handler {
		garbage := &scripted.Server{Mode: scripted.Garbage}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++; garbage.ServeHTTP(w, r) })
	}, nil)
	b.handleItems(t, logItems("starting a sweep")...)
	for hour := range 3 {
		b.clock.Set(today.Add(time.Duration(hour+1) * time.Hour))
		_, err := b.Step(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, 2, asked)
}

// Which failures leave a question as if nobody had been asked.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.Kind{llm.KindUnavailable, llm.KindThrottled, llm.KindBudget, llm.KindBreaker} {
		require.True(t, llm.IsUnanswered(&llm.Error{Kind: kind}), kind)
	}
	require.True(t, llm.IsUnanswered(&llm.Error{Kind: llm.KindDenied, Status: 401}))
	require.False(t, llm.IsUnanswered(&llm.Error{Kind: llm.KindDenied, Status: 400}))
	require.False(t, llm.IsUnanswered(&llm.Error{Kind: llm.KindInvalid}))
	require.False(t, llm.IsUnanswered(&llm.Error{Kind: llm.KindRefused}))
	require.False(t, llm.IsUnanswered(nil))
}
