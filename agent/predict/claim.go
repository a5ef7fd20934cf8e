package predict

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/core/evidence"
)

// claim is a record that a model read out of log lines, with where it came from.
type claim struct {
	Record
	ID         string    `json:"id"`
	Sent       time.Time `json:"sent"`
	Model      string    `json:"model"`
	PromptHash string    `json:"prompt_hash"`
	Evidence   string    `json:"evidence"`       // hash of the lines that were read
	Opened     bool      `json:"opened"`         // the gate has decided about it
	Until      time.Time `json:"until,omitzero"` // and it is judged then
	Told       bool      `json:"told,omitempty"` // that nothing could be decided about it
}

// taken tells what was decided about the claim.
func (c claim) taken(d evidence.Decision) Taken {
	return Taken{Start: c.Start, End: c.End, GPUs: c.Mid, Reason: c.Reason, Stated: c.Probability, Decision: d}
}

// evidenceHash names lines without telling them.
func evidenceHash(lines []redact.Scrubbed) string {
	h := sha256.New()
	for _, line := range lines {
		h.Write(append([]byte(line.String()), '\n'))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// evidenceRecord is the claim as evidence about a tenant. limit is the most GPUs that a
// model may speak of.
func (c claim) evidenceRecord(tenant string, limit int) evidence.Record {
	mid := min(max(1, c.Mid), max(1, limit))
	return evidence.Record{
		Source: string(LLM), Reason: string(c.Reason), Tenant: tenant, Sent: c.Sent, Start: c.Start, End: c.End,
		Low: min(c.Low, mid), Mid: mid, High: max(mid, min(c.High, limit)), Probability: c.Probability,
	}
}

// isSameNeed reports whether two claims speak of one need.
func (c claim) isSameNeed(o claim) bool {
	return c.Reason == o.Reason && c.Start.Before(o.End) && o.Start.Before(c.End)
}

// tenantEvidence is what is kept of one tenant's evidence.
type tenantEvidence struct {
	Watch  *evidence.Watch `json:"watch"`
	Claims []claim         `json:"claims"` // of times to come, the newest first
}

// addClaims takes new claims in. A new one takes the place of an older one that speaks
// of the same need, unless that one is being judged: saying a thing twice makes
// it neither likelier nor larger. It returns those that speak of a need of which none spoke before.
func (h *tenantEvidence) addClaims(fresh []claim) (unspoken []claim) {
	var kept []claim
	for _, c := range fresh {
		if anySame(c, kept, false) || anySame(c, h.Claims, true) {
			continue
		}
		kept = append(kept, c)
		if !anySame(c, h.Claims, false) {
			unspoken = append(unspoken, c)
		}
	}
	for _, c := range h.Claims {
		if c.Opened || !anySame(c, kept, false) {
			kept = append(kept, c)
		}
	}
	h.Claims = kept[:min(len(kept), maxRecords)]
	return unspoken
}

func anySame(c claim, among []claim, opened bool) bool {
	for _, o := range among {
		if c.isSameNeed(o) && (o.Opened || !opened) {
			return true
		}
	}
	return false
}

// nameClaims gives the records of an answer their names.
func (t *trust) nameClaims(now time.Time, e Evidence, lines []redact.Scrubbed) []claim {
	hash := evidenceHash(lines)
	all := make([]claim, len(e.Records))
	for i, r := range e.Records {
		t.named++
		all[i] = claim{Record: r, ID: strconv.FormatInt(t.named, 10), Sent: now, Model: e.Model,
			PromptHash: e.PromptHash, Evidence: hash}
	}
	return all
}
