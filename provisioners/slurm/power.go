package slurm

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/provisioners"
)

// mayPowerUp reports whether POWER_UP is worth a try: it was not refused within the last
// hour. Slurm gives that right to administrators alone.
func (o *Observed) mayPowerUp() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.config.Warm != WarmHeartbeat && (o.denied.IsZero() || o.clock.Now().Sub(o.denied) >= settingsAge)
}

// powerUp powers a cold node up, once: Slurm runs ResumeProgram again for a node that
// boots already, so the caller has just seen that it does not.
func (o *Observed) powerUp(ctx context.Context, k keeping) error {
	if !o.mayPowerUp() {
		return o.submitBeat(ctx, k, bootBeat, 0)
	}
	_, err := o.askSlurm(ctx, provisioners.KindUnknown, "", "scontrol", "update", "NodeName="+k.host, "State=POWER_UP")
	if provisioners.KindOf(err) == provisioners.KindDenied {
		o.mu.Lock()
		o.denied, o.powers = o.clock.Now(), false
		o.mu.Unlock()
		return o.submitBeat(ctx, k, bootBeat, 0)
	}
	if err != nil {
		return fmt.Errorf("powering node %s up: %w", k.host, err)
	}
	o.mu.Lock()
	o.powers = true
	o.mu.Unlock()
	return nil
}

// Means is how an observer warms nodes of its cluster, for people to see.
type Means struct {
	// Warm is WarmPowerUp or WarmHeartbeat, or WarmAuto while no cold node was warmed.
	Warm string
	// Reason says why, in a sentence.
	Reason string
	// HeartbeatsPerHour is the most that run on one kept node while it is idle, by
	// SuspendTime; 0: nodes are never suspended here.
	HeartbeatsPerHour float64
	// Submitted is how many heartbeats this process has submitted.
	Submitted int
}

// Means tells how nodes are warmed. What rights there are shows when the first cold node
// is warmed, and is tried again every hour.
func (o *Observed) Means(ctx context.Context) (Means, error) {
	set, err := o.readSettings(ctx)
	if err != nil {
		return Means{}, err
	}
	may := o.mayPowerUp()
	o.mu.Lock()
	defer o.mu.Unlock()
	m, set := Means{Submitted: o.submitted}, set.hastiest(o.config.Offers)
	if set.beats() {
		m.HeartbeatsPerHour = settingsAge.Seconds() / set.interval().Seconds()
	}
	switch {
	case o.config.Warm == WarmHeartbeat:
		m.Warm, m.Reason = WarmHeartbeat, "the configuration says so"
	case !may:
		m.Warm, m.Reason = WarmHeartbeat, "Slurm refused POWER_UP, which only its administrators may use"
	case o.powers:
		m.Warm, m.Reason = WarmPowerUp, "Slurm accepted POWER_UP"
	default:
		m.Warm, m.Reason = WarmAuto, "no cold node was warmed in the last hour: POWER_UP will be tried"
	}
	return m, nil
}
