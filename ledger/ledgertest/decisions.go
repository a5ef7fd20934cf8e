package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

func newPreview(id, org string) ledger.Preview {
	return ledger.Preview{
		ID: id, OrganizationID: org, MadeBy: "key_1", Kind: "reserve", Request: []byte(`{"gpus":1}`),
		Effect: []byte(`{}`), Fingerprint: "3f",
		CreatedAt: day, ExpiresAt: day.Add(5 * time.Minute), AppliedAt: day.Add(time.Minute), Status: 201,
		Answer: []byte(`{"id":"x"}`),
	}
}

// decisionEvent returns an event that carries a decision of the kind.
func decisionEvent(org, subject string, kind ledger.DecisionKind) ledger.Event {
	e := newEvent(org, subject)
	e.Decision = []byte(ledger.DecisionPrefix(kind) + `"engine":"plan","record":{}}`)
	return e
}

func decisionsComeNewestFirst(w *world) {
	all := []ledger.Event{
		decisionEvent("org_1", "rsv_1", ledger.DecisionAdmission),
		decisionEvent("org_2", "rsv_2", ledger.DecisionRefusal),
		decisionEvent("", "nod_1", ledger.DecisionPrewarm), decisionEvent("org_1", "rsv_1", ledger.DecisionReclaim),
	}
	all[1].PoolID, all[3].Actor = "pol_2", "key_7"
	w.mustSave(ledger.Change{Events: append([]ledger.Event{newEvent("org_1", "rsv_1")}, all...)})
	for i, e := range awaitEvents(w, 5)[1:] {
		require.Nil(w, e.Decision, "the journal comes without records")
		all[i].Seq = e.Seq
	}
	for name, c := range map[string]struct {
		scope  ledger.Scope
		filter ledger.DecisionFilter
		limit  int
		want   []ledger.Event
	}{
		"all":     {everything, ledger.DecisionFilter{}, 0, []ledger.Event{all[3], all[2], all[1], all[0]}},
		"page":    {everything, ledger.DecisionFilter{Before: all[3].Seq}, 2, []ledger.Event{all[2], all[1]}},
		"tenant":  {ledger.Scope{OrganizationID: "org_2"}, ledger.DecisionFilter{}, 0, []ledger.Event{all[1]}},
		"nobody":  {ledger.Scope{}, ledger.DecisionFilter{}, 0, []ledger.Event{}},
		"subject": {everything, ledger.DecisionFilter{Subject: "rsv_1"}, 0, []ledger.Event{all[3], all[0]}},
		"pool":    {everything, ledger.DecisionFilter{PoolID: "pol_2"}, 0, []ledger.Event{all[1]}},
		"actor":   {everything, ledger.DecisionFilter{Actor: "key_7"}, 0, []ledger.Event{all[3]}},
		"kind":    {everything, ledger.DecisionFilter{Kind: ledger.DecisionPrewarm}, 0, []ledger.Event{all[2]}},
		"one":     {everything, ledger.DecisionFilter{Seq: all[1].Seq}, 0, []ledger.Event{all[1]}},
		"hidden":  {ledger.Scope{OrganizationID: "org_1"}, ledger.DecisionFilter{Seq: all[1].Seq}, 0, []ledger.Event{}},
	} {
		got := readValue(w, func(r ledger.Reader) ([]ledger.Event, error) {
			return r.Decisions(c.scope, c.filter, c.limit)
		})
		require.Equal(w, c.want, got, name)
	}
}
