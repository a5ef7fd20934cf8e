package sqlledger

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/learned"
)

// learnedForm is the version of learnedText.
const learnedForm = 1

// learnedText is how the database stores what a pool has learned. Times and
// durations are microseconds, as everywhere in the database.
type learnedText struct {
	Form     int          `json:"form"`
	Prior    [2]int64     `json:"prior"` // median and 95th percentile of boots
	Faded    int          `json:"faded,omitempty"`
	Boots    []int64      `json:"boots,omitempty"`
	Blocked  int64        `json:"blocked,omitempty"`
	Failures int          `json:"failures,omitempty"`
	Blocks   int          `json:"blocks,omitempty"`
	Unfit    string       `json:"unfit,omitempty"`
	InRow    int          `json:"unfit_in_row,omitempty"`
	Odds     []oddsText   `json:"odds,omitempty"` // by the hour of the day
	Created  [3]int64     `json:"created"`        // as earlier releases counted: since, before, count
	Removed  [3]int64     `json:"removed"`
	Creates  [][2]int64   `json:"creates,omitempty"` // times and numbers
	Removes  [][2]int64   `json:"removes,omitempty"`
	Watched  int64        `json:"watched,omitempty"`
	Open     float64      `json:"open,omitempty"`
	Demand   [][2]float64 `json:"demand,omitempty"` // nodes and hours, by the hour of the week
	Leases   []int64      `json:"leases,omitempty"`
	Cleaning []cleanText  `json:"cleaning,omitempty"`
	Rooms    []leftText   `json:"rooms,omitempty"`
	// Sources are the alternates, of which only boots and supply are learned.
	Sources map[string]learnedText `json:"sources,omitempty"`
}

type cleanText struct {
	ID    string   `json:"id"` // of an allocation
	Since int64    `json:"since"`
	Slots []int    `json:"slots"`
	GPUs  int      `json:"gpus"`
	Short int      `json:"short,omitempty"`
	UUIDs []string `json:"uuids"`
	Await []string `json:"await,omitempty"` // nodes
	// GivenUp are nodes whose proof did not come in time.
	GivenUp []string `json:"given_up,omitempty"`
}

type leftText struct {
	For    string   `json:"for"` // a job
	Since  int64    `json:"since"`
	GiveUp int64    `json:"give_up"`
	Until  int64    `json:"until"`
	Slots  []int    `json:"slots"`
	GPUs   int      `json:"gpus"`
	Short  int      `json:"short,omitempty"`
	From   []string `json:"from"` // allocations
}

type oddsText struct {
	Given   float64 `json:"g,omitempty"`
	Refused float64 `json:"r,omitempty"`
	At      int64   `json:"at,omitempty"`
}

func learnedToText(l learned.Learned) learnedText {
	t := learnedText{
		Form: learnedForm, Prior: [2]int64{l.Boot.Prior50.Microseconds(), l.Boot.Prior95.Microseconds()},
		Faded:   l.Boot.Faded,
		Blocked: toMicros(l.BlockedUntil), Failures: l.Failures, Blocks: l.Blocks, Unfit: l.Unfit, InRow: l.UnfitInRow,
		Creates: packWindow(l.Created), Removes: packWindow(l.Removed),
		Watched: toMicros(l.Arrivals.Until), Open: l.Arrivals.Open,
	}
	for _, d := range l.Boot.Seen {
		t.Boots = append(t.Boots, d.Microseconds())
	}
	for _, o := range l.Hours {
		t.Odds = append(t.Odds, oddsText{o.Given, o.Refused, toMicros(o.At)})
	}
	for i, n := range l.Arrivals.Taken {
		t.Demand = append(t.Demand, [2]float64{n, l.Arrivals.Hours[i]})
	}
	for _, part := range l.Leases.Seen {
		t.Leases = append(t.Leases, int64(part))
	}
	for _, x := range l.Cleaning {
		t.Cleaning = append(t.Cleaning, cleanText{ID: x.ID, Since: toMicros(x.Since), Slots: x.Slots, GPUs: x.GPUs,
			Short: x.Short, UUIDs: x.UUIDs, Await: x.Await, GivenUp: x.GivenUp})
	}
	for _, x := range l.Rooms {
		t.Rooms = append(t.Rooms, leftText{For: x.For, Since: toMicros(x.Since), GiveUp: toMicros(x.GiveUp),
			Until: toMicros(x.Until), Slots: x.Slots, GPUs: x.GPUs, Short: x.Short, From: x.From})
	}
	for key, known := range l.Sources {
		if t.Sources == nil {
			t.Sources = map[string]learnedText{}
		}
		t.Sources[key] = learnedToText(learned.Learned{Boot: known.Boot, Supply: known.Supply})
	}
	return t
}

func packLearned(l learned.Learned) string {
	text, err := json.Marshal(learnedToText(l))
	if err != nil {
		return "" // what a pool has learned is finite; anything else fails when it is read
	}
	return string(text)
}

func unpackLearned(text string) (learned.Learned, error) {
	var t learnedText
	if err := json.Unmarshal([]byte(text), &t); err != nil || t.Form != learnedForm {
		return learned.Learned{}, fmt.Errorf("column learned holds nothing that version %d can read: %q", learnedForm,
			text)
	}
	return t.toLearned(), nil
}

func (t learnedText) toLearned() learned.Learned {
	l := learned.Learned{
		Boot: learned.BootTimes{Prior50: toDuration(t.Prior[0]), Prior95: toDuration(t.Prior[1]), Faded: t.Faded},
		Supply: learned.Supply{BlockedUntil: toTime(t.Blocked), Failures: t.Failures, Blocks: t.Blocks, Unfit: t.Unfit,
			UnfitInRow: t.InRow,
			Created:    unpackWindow(t.Creates, t.Created), Removed: unpackWindow(t.Removes, t.Removed)},
		Arrivals: learned.Arrivals{Until: toTime(t.Watched), Open: t.Open},
	}
	for _, us := range t.Boots {
		l.Boot.Seen = append(l.Boot.Seen, toDuration(us))
	}
	for _, o := range t.Odds {
		l.Hours = append(l.Hours, learned.Odds{Given: o.Given, Refused: o.Refused, At: toTime(o.At)})
	}
	for _, d := range t.Demand {
		l.Arrivals.Taken, l.Arrivals.Hours = append(l.Arrivals.Taken, d[0]), append(l.Arrivals.Hours, d[1])
	}
	for _, part := range t.Leases {
		l.Leases.Seen = append(l.Leases.Seen, time.Duration(part))
	}
	for _, x := range t.Cleaning {
		l.Cleaning = append(l.Cleaning, learned.Cleaning{ID: x.ID, Since: toTime(x.Since), Slots: x.Slots, GPUs: x.GPUs,
			Short: x.Short, UUIDs: x.UUIDs, Await: x.Await, GivenUp: x.GivenUp})
	}
	for _, x := range t.Rooms {
		l.Rooms = append(l.Rooms, learned.Room{For: x.For, Since: toTime(x.Since), GiveUp: toTime(x.GiveUp),
			Until: toTime(x.Until), Slots: x.Slots, GPUs: x.GPUs, Short: x.Short, From: x.From})
	}
	for key, known := range t.Sources {
		if l.Sources == nil {
			l.Sources = map[string]learned.SourceLearned{}
		}
		of := known.toLearned()
		l.Sources[key] = learned.SourceLearned{Boot: of.Boot, Supply: of.Supply}
	}
	return l
}

func packWindow(w learned.Window) [][2]int64 {
	var marks [][2]int64
	for _, m := range w {
		marks = append(marks, [2]int64{toMicros(m.At), int64(m.N)})
	}
	return marks
}

// unpackWindow reads marks, or what an earlier release counted, which counts from
// the beginning of its window.
func unpackWindow(marks [][2]int64, counted [3]int64) learned.Window {
	var w learned.Window
	if n := counted[1] + counted[2]; n > 0 && counted[0] > 0 && len(marks) == 0 {
		marks = [][2]int64{{counted[0], n}}
	}
	for _, m := range marks {
		w = append(w, learned.EventCount{At: toTime(m[0]), N: int(m[1])})
	}
	return w
}
