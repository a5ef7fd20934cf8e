package verbs_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// newForecast is a forecast of the hour after next.
func (w *world) newForecast(id string, change ...func(*ledger.Forecast)) ledger.Forecast {
	now := w.clock.Now()
	f := ledger.Forecast{
		ID: id, PoolID: w.pool.ID, Source: ledger.ByLLM, ReasonCode: "announced_work", Model: "m", IssuedAt: now,
		Start: now.Add(time.Hour), End: now.Add(2 * time.Hour),
		Said:     forecast.Summary{P10: 0, P50: 2, P90: 4, Any: 0.75, Mean: 2},
		Baseline: ledger.FractionOf(0.25),
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func (w *world) recordForecasts(by ledger.Actor, list ...ledger.Forecast) (int, error) {
	return w.ledger.RecordForecasts(w.Context(), by, list)
}

func (w *world) closeForecasts(by ledger.Actor, gpus int, names ...string) (int, error) {
	var list []ledger.ForecastClosing
	for _, id := range names {
		list = append(list, ledger.ForecastClosing{ID: id, GPUs: gpus, CountedAt: w.clock.Now()})
	}
	return w.ledger.CloseForecasts(w.Context(), by, list)
}

func (w *world) readForecasts(s ledger.Scope) (list []ledger.Forecast) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		list, err = r.Forecasts(s, ledger.ForecastFilter{}, 500)
		return err
	})
	return list
}

// refusedItems is which items of a batch an error blames, and why.
func refusedItems(t require.TestingT, err, reason error) []int {
	var batch *ledger.BatchError
	require.ErrorAs(t, err, &batch)
	require.ErrorIs(t, err, reason)
	return batch.Items
}

func TestAForecastIsRecordedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ada"), "bot")
	first := w.newForecast("fct_1")
	for i, want := range []int{1, 0} {
		n, err := w.recordForecasts(bot, first, first)
		require.NoError(t, err)
		require.Equal(t, want, n, i)
		w.clock.Advance(3 * time.Hour) // a repeat may come when a new one would be too late
	}
	stored := w.readForecasts(bot.Scope())
	require.Len(t, stored, 1)
	require.Equal(t, monday, stored[0].RecordedAt)
	require.Equal(t, "bot", stored[0].MadeBy)
	require.Equal(t, first.Said, stored[0].Said)
	require.Empty(t, w.readEvents("forecast"), "measurements leave no events")

	for name, change := range map[string]func(*ledger.Forecast){
		"quantile": func(f *ledger.Forecast) { f.Said.P90++ }, "chance": func(f *ledger.Forecast) { f.Said.Any = 0.76 },
		"source":    func(f *ledger.Forecast) { f.Source = ledger.ByPerson },
		"window":    func(f *ledger.Forecast) { f.End = f.End.Add(time.Second) },
		"baseline":  func(f *ledger.Forecast) { f.Baseline = ledger.Fraction{} },
		"hash":      func(f *ledger.Forecast) { f.EvidenceHash = "ab" },
		"influence": func(f *ledger.Forecast) { f.Influence = ledger.FractionOf(0) },
		"issued":    func(f *ledger.Forecast) { f.IssuedAt = f.IssuedAt.Add(-time.Second) },
	} {
		other := first
		change(&other)
		_, err := w.recordForecasts(bot, w.newForecast("fct_2"), other)
		require.Equal(t, []int{1}, refusedItems(t, err, ledger.ErrDiffers), name)
	}
	twin := w.newForecast("fct_2")
	twin.Said.P90 = 99
	_, err := w.recordForecasts(bot, w.newForecast("fct_2"), twin, w.newForecast("fct_3"))
	require.Equal(t, []int{1}, refusedItems(t, err, ledger.ErrDiffers), "within one batch")
	require.Equal(t, stored, w.readForecasts(bot.Scope()), "nothing of a refused batch is there")
}

func TestForecastsThatAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.newPerson("ada")
	for field, change := range map[string]func(*ledger.Forecast){
		"end":         func(f *ledger.Forecast) { f.End = f.Start },
		"end ":        func(f *ledger.Forecast) { f.End = f.Start.AddDate(0, 0, 32) },
		"issued_at":   func(f *ledger.Forecast) { f.IssuedAt = f.Start.Add(time.Second) },
		"issued_at ":  func(f *ledger.Forecast) { f.IssuedAt = time.Time{} },
		"issued_at  ": func(f *ledger.Forecast) { f.IssuedAt = w.clock.Now().Add(6 * time.Minute) },
		"start": func(f *ledger.Forecast) {
			f.Start = w.clock.Now().Add(-3 * time.Minute)
			f.IssuedAt = f.Start
		},
		"gpus":                 func(f *ledger.Forecast) { f.Said.P10 = -1 },
		"gpus ":                func(f *ledger.Forecast) { f.Said.P50 = 5 },
		"gpus  ":               func(f *ledger.Forecast) { f.Said.P90 = 1_000_001 },
		"gpus.mean":            func(f *ledger.Forecast) { f.Said.Mean = math.NaN() },
		"gpus.mean ":           func(f *ledger.Forecast) { f.Said.Mean = math.Inf(1) },
		"probability":          func(f *ledger.Forecast) { f.Said.Any = 1.01 },
		"probability ":         func(f *ledger.Forecast) { f.Said.Any = math.NaN() },
		"baseline_probability": func(f *ledger.Forecast) { f.Baseline = ledger.FractionOf(2) },
		"influence":            func(f *ledger.Forecast) { f.Influence = ledger.FractionOf(math.NaN()) },
		"source":               func(f *ledger.Forecast) { f.Source = "stars" },
		"pool_id":              func(f *ledger.Forecast) { f.PoolID = "pol_404" },
		"pool_id ":             func(f *ledger.Forecast) { f.PoolID = w.pool.Name },
	} {
		_, err := w.recordForecasts(ada, w.newForecast("fct_1"), w.newForecast("fct_2", change))
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, "forecasts[1]."+trimName(field), invalid.Field)
	}
	for _, n := range []int{0, ledger.MaxForecasts + 1} {
		_, err := w.recordForecasts(ada, make([]ledger.Forecast, n)...)
		require.ErrorContains(t, err, "must hold 1 to 1000")
	}
	_, err := w.recordForecasts(operator, w.newForecast("fct_1"))
	require.ErrorIs(t, err, ledger.ErrDenied, "whoever belongs to nobody expects nothing")
	require.Empty(t, w.readForecasts(ledger.Scope{All: true}))
	begun := w.newForecast("fct_1",
		func(f *ledger.Forecast) { f.Start = w.clock.Now().Add(-time.Minute); f.IssuedAt = f.Start })
	n, err := w.recordForecasts(ada, begun)
	require.NoError(t, err, "a retry may take a moment")
	require.Equal(t, 1, n)
}

// trimName takes off what makes names of cases differ.
func trimName(name string) string {
	for len(name) > 0 && name[len(name)-1] == ' ' {
		name = name[:len(name)-1]
	}
	return name
}

func TestAForecastIsScoredWhenItsWindowIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.newPerson("ada")
	bot, twin, eve := agentBeside(ada, "bot"), agentBeside(ada, "twin"), w.newPerson("eve")
	_, err := w.recordForecasts(bot, w.newForecast("fct_1"), w.newForecast("fct_2",
		func(f *ledger.Forecast) { f.Baseline = ledger.Fraction{} }), w.newForecast("fct_3"))
	require.NoError(t, err)
	w.clock.Advance(2*time.Hour - time.Microsecond)
	_, err = w.closeForecasts(bot, 3, "fct_1", "fct_3")
	require.Equal(t, []int{0, 1}, refusedItems(t, err, ledger.ErrNotOver))
	early := ledger.ForecastClosing{ID: "fct_1", GPUs: 3, CountedAt: w.clock.Now()}
	w.clock.Advance(time.Microsecond)
	for _, at := range []time.Time{early.CountedAt, w.clock.Now().Add(6 * time.Minute)} {
		early.CountedAt = at
		_, err = w.ledger.CloseForecasts(t.Context(), bot, []ledger.ForecastClosing{early})
		require.ErrorContains(t, err, "outcomes[0].counted_at must be between")
	}
	for name, by := range map[string]ledger.Actor{"another tenant": eve, "another agent": twin} {
		_, err = w.closeForecasts(by, 3, "fct_1")
		require.Equal(t, []int{0}, refusedItems(t, err, ledger.ErrNotFound), name)
	}
	_, err = w.closeForecasts(bot, 3, "fct_1", "fct_404", "fct_405")
	require.Equal(t, []int{1, 2}, refusedItems(t, err, ledger.ErrNotFound))
	n, err := w.closeForecasts(bot, 3, "fct_1", "fct_2", "fct_1")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, err = w.closeForecasts(ada, 3, "fct_2", "fct_3")
	require.Equal(t, []int{0, 1}, refusedItems(t, err, ledger.ErrNotFound), "a member whose key did not make them")
	admin := ada
	admin.Role = ledger.Admin
	n, err = w.closeForecasts(admin, 3, "fct_2", "fct_3")
	require.NoError(t, err)
	require.Equal(t, 1, n)

	stored := w.readForecasts(ada.Scope())
	for i, baseline := range []ledger.Fraction{ledger.FractionOf(0.5625), {}, ledger.FractionOf(0.5625)} {
		o := stored[i].Outcome
		require.Equal(t, 3, o.GPUs)
		require.Equal(t, w.clock.Now(), o.ClosedAt)
		require.Equal(t, stored[i].Said.Evaluate(3), o.Score)
		require.Equal(t, baseline, o.BaselineBrier)
	}
	w.clock.Advance(time.Hour)
	_, err = w.closeForecasts(bot, 4, "fct_1")
	require.Equal(t, []int{0}, refusedItems(t, err, ledger.ErrDiffers))
	require.Equal(t, stored, w.readForecasts(ada.Scope()), "the first outcome stays")
	for _, gpus := range []int{-1, 100_001} {
		_, err = w.closeForecasts(bot, gpus, "fct_1")
		require.ErrorContains(t, err, "outcomes[0].gpus")
	}
	_, err = w.closeForecasts(bot, 0)
	require.ErrorContains(t, err, "must hold 1 to 1000")
}

// Many senders of the same forecasts and outcomes at once leave each once, and
// every one of them is told so.
func TestManySendersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ada"), "bot")
	var list []ledger.Forecast
	var names []string
	for i := range 20 {
		list = append(list, w.newForecast(fmt.Sprintf("fct_%02d", i)))
		names = append(names, list[i].ID)
	}
	atOnce := func(send func() (int, error)) int {
		var all sync.WaitGroup
		var counts [8]int
		var errs [8]error
		for i := range counts {
			all.Go(func() { counts[i], errs[i] = send() })
		}
		all.Wait()
		sum := 0
		for i, n := range counts {
			require.NoError(t, errs[i])
			sum += n
		}
		return sum
	}
	require.Equal(t, len(list), atOnce(func() (int, error) { return w.recordForecasts(bot, list...) }))
	w.clock.Advance(2 * time.Hour)
	require.Equal(t, len(list), atOnce(func() (int, error) { return w.closeForecasts(bot, 2, names...) }))
}

func TestAKeyAddsSoManyForecastsADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ada"), "bot")
	w.ledger = verbs.New(w.store, &ids.Sequence{}, ledger.Config{ForecastsPerDay: 3})
	_, err := w.recordForecasts(bot, w.newForecast("fct_1"), w.newForecast("fct_2"))
	require.NoError(t, err)
	_, err = w.recordForecasts(agentBeside(w.newPerson("eve"), "another"), w.newForecast("fct_1"))
	require.NoError(t, err)
	_, err = w.recordForecasts(bot, w.newForecast("fct_a"), w.newForecast("fct_b"))
	var many *ledger.TooManyError
	require.ErrorAs(t, err, &many)
	require.Equal(t, 15*time.Hour, many.After)
	_, err = w.recordForecasts(bot, w.newForecast("fct_a"))
	require.NoError(t, err, "the last of the day")
	_, err = w.recordForecasts(bot, w.newForecast("fct_b"))
	require.ErrorAs(t, err, &many)
	n, err := w.recordForecasts(bot, w.newForecast("fct_a"))
	require.NoError(t, err, "what is known costs nothing")
	require.Zero(t, n)
	w.clock.Advance(many.After)
	_, err = w.recordForecasts(bot, w.newForecast("fct_b"))
	require.NoError(t, err)
}

// What a history of batches leaves: each forecast as it was first told, closed
// with what was first told of it, and scored by that alone.
func TestForecastsKeepTheirWord(t *testing.T) {
	t.Parallel()
	w, run := newWorld(t), 0
	ada := w.newPerson("ada")
	rapid.Check(t, func(r *rapid.T) {
		run++
		bot := agentBeside(ada, fmt.Sprint("bot ", run))
		said, seen := map[string]ledger.Forecast{}, map[string]int{}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			id := fmt.Sprintf("fct_%d_%d", run, rapid.IntRange(0, 3).Draw(r, "id"))
			gpus := rapid.IntRange(0, 3).Draw(r, "gpus")
			switch rapid.IntRange(0, 2).Draw(r, "what") {
			case 0:
				f := w.newForecast(id, func(f *ledger.Forecast) { f.Said.P90 += gpus })
				if _, err := w.recordForecasts(bot, f); err == nil {
					if _, known := said[id]; !known {
						said[id] = f
					}
				}
			case 1:
				if _, err := w.closeForecasts(bot, gpus, id); err == nil {
					if _, known := seen[id]; !known {
						seen[id] = gpus
					}
				}
			default:
				w.clock.Advance(time.Duration(rapid.IntRange(0, 90).Draw(r, "minutes")) * time.Minute)
			}
		}
		var stored []ledger.Forecast
		w.read(func(rd ledger.Reader) (err error) {
			stored, err = rd.Forecasts(bot.Scope(), ledger.ForecastFilter{MadeBy: bot.KeyID}, 0)
			return err
		})
		require.Len(r, stored, len(said))
		for _, f := range stored {
			require.Equal(r, said[f.ID].Said, f.Said)
			gpus, closed := seen[f.ID]
			require.Equal(r, closed, f.Closed())
			if closed {
				require.Equal(r, gpus, f.Outcome.GPUs)
				require.Equal(r, f.Said.Evaluate(gpus), f.Outcome.Score)
				require.False(r, f.Outcome.ClosedAt.Before(f.End))
			}
		}
	})
}

// A member says how forecasts of their own agents came out, and not of others'.
func TestMembersCloseWhatTheirAgentsExpected(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	ada, bob := k.addUser("ada@example.com", ledger.Member), k.addUser("bob@example.com", ledger.Member)
	of := func(u ledger.User, kind ledger.KeyKind) func(*ledger.Key) {
		return func(key *ledger.Key) {
			if key.Kind, key.UserID = kind, u.ID; kind == ledger.AgentKey {
				withGPUCap(8)(key)
			}
		}
	}
	require.NoError(t, k.mintKey("root", "ada", ledger.Member, of(ada, ledger.PersonKey)))
	require.NoError(t, k.mintKey("root", "bob", ledger.Member, of(bob, ledger.PersonKey)))
	require.NoError(t, k.mintKey("root", "bot", ledger.Member, of(ada, ledger.AgentKey)))
	_, err := k.recordForecasts(k.mustActor("bot"), k.newForecast("fct_1"))
	require.NoError(t, err)
	k.clock.Advance(2 * time.Hour)
	_, err = k.closeForecasts(k.mustActor("bob"), 3, "fct_1")
	require.Equal(t, []int{0}, refusedItems(t, err, ledger.ErrNotFound))
	n, err := k.closeForecasts(k.mustActor("ada"), 3, "fct_1")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
