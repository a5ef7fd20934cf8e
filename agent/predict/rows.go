package predict

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
)

// Code is the reason as it may leave the agent.
func (r Reason) Code() string {
	switch r {
	case Recent:
		return contract.ReasonRecentRate
	case Recurring:
		return contract.ReasonRecurringPattern
	case Announced, DataReady:
		return contract.ReasonAnnouncedWork
	case JobReady, Retry:
		return contract.ReasonQueueBacklog
	default:
		return contract.ReasonOther
	}
}

// Rows turns what the forecast ledger holds into what may leave the agent. Their
// ids are made with a secret: without one, whoever receives them could find the
// name of a tenant by trying out names.
type Rows struct {
	PoolID string
	Secret []byte
}

// Forecast is an entry, without the tenant's name and the words for reasons.
func (r Rows) Forecast(e Entry) contract.AgentForecast {
	out := contract.AgentForecast{
		ID: r.rowID(e.ID, e.Source), PoolID: r.PoolID, Source: string(e.Source), ReasonCode: e.Reason.Code(),
		IssuedAt: e.Issued, Start: e.Start, End: e.End, Probability: e.Forecast.Any,
		GPUs:  contract.Quantiles{P10: e.Forecast.P10, P50: e.Forecast.P50, P90: e.Forecast.P90, Mean: e.Forecast.Mean},
		Model: modelID(e.Model), PromptHash: e.PromptHash,
	}
	if s := e.Statement; s != nil {
		out.BaselineProbability, out.Influence, out.EvidenceHash = &s.Statistics.Any, &s.Weight, r.pseudonym(s.Evidence)
	}
	return out
}

// pseudonym is a hash of a hash and the secret: what a short line says could be found
// from its plain hash by trying.
func (r Rows) pseudonym(hash string) string {
	mac := hmac.New(sha256.New, r.Secret)
	mac.Write([]byte(hash))
	return hex.EncodeToString(mac.Sum(nil))
}

// Outcome is an outcome of an entry.
func (r Rows) Outcome(o Outcome) contract.AgentOutcome {
	return contract.AgentOutcome{ID: r.rowID(o.ID, o.Source), GPUs: o.GPUs, CountedAt: o.Closed}
}

// rowID names an entry in the same way each time it is sent.
func (r Rows) rowID(entry string, s Source) string {
	return ids.Derived(ids.Forecast, string(r.Secret), entry, string(s))
}

// maxModel is the longest identifier of a model that may leave.
const maxModel = 64

// modelID writes a model's name in the letters that the contract has for it.
func modelID(name string) string {
	id := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("._:/-", c) {
			return c
		}
		return '-'
	}, strings.ToLower(name))
	return id[:min(len(id), maxModel)]
}
