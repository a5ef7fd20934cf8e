package evidence

// kindOf returns the record's kind, nil if there are too many.
func (b *TrackRecords) kindOf(r Record) *kind {
	k, ok := b.kinds[r.kindKey()]
	if !ok && len(b.kinds) < maxKinds {
		k = &kind{Source: r.Source, Tenants: map[string]*track{}, Calibration: newCalibration()}
		b.kinds[r.kindKey()] = k
	}
	return k
}

func (b *TrackRecords) accountOf(source string) *account {
	s, ok := b.sources[source]
	if !ok && len(b.sources) < maxKinds {
		s = &account{}
		b.sources[source] = s
	}
	return s
}

// beliefIn is what the kind's record says of r: the tenant's own, shrunk to the
// kind's, and more or less of it as the source is more or less sure than it
// usually is.
func (k *kind) beliefIn(r Record) belief {
	b := k.Overall.updateBelief(unknownBelief())
	if t := k.Tenants[r.Tenant]; t != nil {
		b = t.updateBelief(b)
	}
	if k.MeanChance > 0 {
		b = b.scaleBy(clampFinite(k.Calibration.Platt.calibrate(r.Probability)/k.MeanChance, 0.25, 4))
	}
	return b
}

// saidWeight is the weight of the newest record in the mean of stated chances.
const saidWeight = 1.0 / 16

func (k *kind) learnResult(r Record, came result) {
	k.Overall.addResult(came)
	t := k.Tenants[r.Tenant]
	if t == nil && len(k.Tenants) < maxTenants {
		t = &track{}
		k.Tenants[r.Tenant] = t
	}
	if t != nil {
		t.addResult(came)
	}
	chance := k.Calibration.Platt.calibrate(r.Probability)
	if k.MeanChance == 0 {
		k.MeanChance = chance
	}
	k.MeanChance += saidWeight * (chance - k.MeanChance)
}

// Chance returns what statistics expect with the probability given, after a
// source has stated a chance for the same: its odds changed by the calibrated
// likelihood ratio of such a statement.
func (b *TrackRecords) Chance(r Record, baseline float64) float64 {
	v := newCalibration()
	if k := b.kinds[r.kindKey()]; k != nil {
		v = k.Calibration
	}
	return v.blendedChance(r.Probability, baseline)
}

// Weight returns the weight of the source in a forecast made of both, 0 to MaxWeight.
// It is 0 while the source or the kind is demoted.
func (b *TrackRecords) Weight(source, reason string) float64 {
	if s := b.sources[source]; s != nil && s.Calibration.Demoted {
		return 0
	}
	k := b.kinds[source+"/"+reason]
	switch {
	case k == nil:
		return firstWeight
	case k.Calibration.Record.Demoted:
		return 0
	default:
		return k.Calibration.Weight
	}
}

// Score learns from a forecast that the record touched and that is closed: what
// statistics alone had expected, and whether it came. It is called whether the
// record had any weight or not, so that one who is demoted can come back.
func (b *TrackRecords) Score(r Record, baseline float64, came bool) {
	if r.Check() != nil || !areFinite(baseline) {
		return
	}
	k, s := b.kindOf(r), b.accountOf(r.Source)
	if k == nil || s == nil {
		return
	}
	s.judgeRecord(&k.Calibration.Record, (*account).calibrationRecord,
		k.Calibration.scoreOutcome(r.Probability, baseline, came))
}

// TrackRecord is where a source and one of its kinds stand, to be shown.
type TrackRecord struct {
	Records float64 `json:"records"` // decayed count
	Trust   float64 `json:"trust"`   // share of the claimed jobs that its records would have spared a wait
	Weight  float64 `json:"say"`     // in forecasts
	Acting  bool    `json:"acting"`  // its records may be acted on
	Left    float64 `json:"left"`    // GPU-hours that the source may still lose
	Spent   float64 `json:"spent"`   // GPU-hours idled for the source
	Earned  float64 `json:"earned"`  // GPU-hours that its spared waits were worth
}

// TrackRecord returns where a kind stands.
func (b *TrackRecords) TrackRecord(source, reason string) TrackRecord {
	out := TrackRecord{Trust: priorTrust, Weight: b.Weight(source, reason), Acting: true, Left: b.cfg.Allowance}
	if k := b.kinds[source+"/"+reason]; k != nil {
		out.Records, out.Trust, out.Acting = k.Overall.N, k.Overall.updateBelief(unknownBelief()).trust,
			!k.Acting.Demoted
	}
	if s := b.sources[source]; s != nil {
		out.Acting = out.Acting && !s.Acting.Demoted
		out.Spent, out.Earned = s.Budget.Spent, s.Budget.Earned
		if !s.Budget.Since.IsZero() {
			out.Left = s.Budget.Balance
		}
	}
	return out
}
