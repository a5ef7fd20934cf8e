// Package report tells the control plane what the watcher of a node's GPUs sees: it joins
// with a one-time token, keeps the key that it gets, renews it, and sends a heartbeat.
//
// It is a step that its caller repeats, with the time as an argument. A look is taken on
// its own beat, whether or not the server can be reached; what is sent is always the newest
// one. Nothing is queued: what is old says nothing of a GPU now.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/watch"
)

const (
	lookEvery  = 10 * time.Second
	firstRetry = 5 * time.Second // full jitter up to this after the first failure, then twice as much
	lastRetry  = time.Minute
	// slowedJitter is the most that is added to what the server asked for that was sent too many requests.
	slowedJitter = 500 * time.Millisecond
	// awaitedLook is how soon GPUs are looked at again that an ended hold has to leave free.
	awaitedLook = time.Second
	tryRenewal  = 10 * time.Minute // after one that failed
	// leastGap is between two looks: what happens within it is told together, so that many short jobs do not
	// make more reports than the server takes.
	leastGap = 25 * time.Millisecond
)

// RefusedError says that the server does not believe the daemon, and will not until an
// operator does something. Its text is for them.
type RefusedError struct{ Cause error }

// Error says what was refused.
func (e *RefusedError) Error() string { return "the server refuses this daemon: " + e.Cause.Error() }

// Unwrap returns the server's problem.
func (e *RefusedError) Unwrap() error { return e.Cause }

// Superseded reports whether a later daemon of the machine is believed in its place.
func (e *RefusedError) Superseded() bool { return isSuperseded(e.Cause) }

// Config is what a reporter works with.
type Config struct {
	URL     string // of the control plane
	NodeID  string
	Token   obs.Secret // for joining; empty: it has joined before
	Version string
	BootID  string
	Epoch   int64 // when the daemon began, in milliseconds since the machine booted
	HTTP    client.Doer
	Random  *rand.Rand // of the jitter
	Log     *slog.Logger
	Holds   Holds // nil: nothing runs here for anybody
	// LookEvery is between two looks, ReportEvery at least between two reports of which nothing is urgent; 0: as the
	// control plane says.
	LookEvery, ReportEvery time.Duration
	Jobs                   Jobs // nil: none are ordered, and none reported; it may be set before the first step
}

// Jobs are attempts of jobs that run here.
type Jobs interface {
	// Reports is what is known of them.
	Reports() []contract.JobReport
	// Gone returns those of some attempts that are not here, or not any more.
	Gone(keys []contract.JobKey) []contract.JobKey
	// Heed starts those that the server orders and that are not known, and forgets those that it
	// names. It returns at once. The server answered a report at a time.
	Heed(orders []contract.JobOrder, forget []contract.JobKey, at time.Time)
	// Stop has those end that the server names, if they run.
	Stop(all []contract.JobStop)
}

// Reporter is the daemon of one node. It is used by one goroutine at a time.
type Reporter struct {
	Config
	watcher *watch.Watcher
	state   State

	hurried   atomic.Bool
	asked     atomic.Bool // the server asked for a report, and has not got it
	key       atomic.Pointer[obs.Secret]
	id        Identity
	unsaved   bool         // the identity is not in the state folder
	saved     watch.Memory // as it was written last
	look      contract.NodeLook
	unsent    bool
	seq       int64
	urgent    bool      // the look is to be told now
	reportAt  time.Time // or else from then on
	told      string    // the healths that were sent last
	failures  int
	every     time.Duration
	lookedAt  time.Time
	lookAt    time.Time
	sendAt    time.Time
	renewAt   time.Time
	leasesAt  time.Time // when a report was last due because a lease was over
	unheardAt time.Time // since when that has been in vain; zero: it is not, or was not tried
	welcomed  bool      // the server has heard this daemon, and the state folder says so
	stateLost string    // why the state cannot be written
	unlisted  unlisted  // what the last answer asked
}

// New returns a reporter that has not begun. The error says that its identity is not of
// this node, or that it cannot join.
func New(cfg Config, w *watch.Watcher, s State) (*Reporter, error) {
	id, err := s.Identity(cfg.NodeID)
	if err != nil {
		return nil, err
	}
	if id.Key == "" && cfg.Token.IsZero() {
		return nil, fmt.Errorf("%w: forewarm nodes join %s makes one", errNoToken, cfg.NodeID)
	}
	r := &Reporter{Config: cfg, watcher: w, state: s, id: id, every: lookEvery}
	r.showKey()
	return r, nil
}

// Hurry has the next step look and report at once. It may be called by any goroutine, which
// then has the step taken.
func (r *Reporter) Hurry() { r.hurried.Store(true) }

// Ask is Hurry for the server, which asks for a report and is told that this is it.
func (r *Reporter) Ask() {
	r.asked.Store(true)
	r.Hurry()
}

// Key is the node's key as it is now; zero: it has not joined. Any goroutine may ask.
func (r *Reporter) Key() obs.Secret { return *r.key.Load() }

func (r *Reporter) showKey() {
	key := obs.NewSecret(r.id.Key)
	r.key.Store(&key)
}

// Step does what is due, and returns when something is due again. A *RefusedError is
// final, and what ran here for holders has ended by then; all else is tried again.
func (r *Reporter) Step(ctx context.Context, now time.Time) (time.Time, error) {
	hurried := r.hurried.Swap(false)
	r.urgent = r.urgent || hurried
	if hurried && r.failures == 0 {
		r.lookAt = now
		if gap := r.lookedAt.Add(leastGap).Sub(now); 0 < gap && gap <= leastGap {
			r.lookAt = now.Add(gap)
		}
	}
	r.askForLeases(now)
	if !now.Before(r.lookAt) {
		r.lookNow(ctx, now)
	}
	if !now.Before(r.sendAt) && r.unsent && (r.urgent || !now.Before(r.reportAt)) {
		if err := r.send(ctx, now); err != nil {
			if final(err) {
				r.endHolds(err)
				return now, &RefusedError{Cause: err}
			}
			r.noteUnheard(now)
			r.sendAt = now.Add(r.retryAfter(err))
			r.Log.WarnContext(ctx, "the report did not reach the server",
				"error", httpx.DescribeFailure(err, "the control plane"), "again_in", r.sendAt.Sub(now).Round(time.Millisecond))
		}
	}
	r.endLapsed(now)
	next := r.lookAt
	if r.unsent && r.sendAt.After(now) {
		next = earlier(next, r.sendAt)
	}
	return r.beforeLeaseEnds(next, now), nil
}

// lookNow takes a look, and has what waits for one read it.
// A GPU that nobody has used yet is tested first, which lasts seconds: no work is told of before.
func (r *Reporter) lookNow(ctx context.Context, now time.Time) {
	r.urgent = r.urgent || r.Holds != nil && r.Holds.AwaitsLook()
	r.look, r.unsent, r.lookedAt = r.watcher.Look(ctx, now), true, now
	if r.watcher.BurnIn(ctx, r.look, r.held()) {
		r.look = r.watcher.Look(ctx, now)
	}
	r.urgent = r.urgent || isNews(r.look, r.told)
	r.lookAt = now.Add(cmp.Or(r.LookEvery, r.every))
	r.keepHealth()
	if r.Holds == nil {
		return
	}
	r.Holds.Look(r.look, now)
	if soon := now.Add(awaitedLook); r.Holds.AwaitsLook() && soon.Before(r.lookAt) {
		r.lookAt = soon
	}
}

// send joins where that has to be, tells the newest look, and renews the key.
func (r *Reporter) send(ctx context.Context, now time.Time) error {
	r.keepIdentity()
	if r.id.Key == "" {
		if err := r.join(ctx, now); err != nil {
			return err
		}
	}
	err := r.beat(ctx, now)
	if isCode(err, contract.CodeUnauthenticated) && !r.Token.IsZero() {
		if err = r.join(ctx, now); err == nil {
			err = r.beat(ctx, now)
		}
	}
	if isUnknown(err) {
		err = r.tryEarlier(ctx, now, err)
	}
	if err != nil {
		return err
	}
	r.failures, r.unsent, r.urgent, r.unheardAt = 0, false, false, time.Time{}
	r.told = healthsOf(r.look)
	if r.LookEvery > 0 || r.ReportEvery > 0 { // else each look is told
		r.reportAt = now.Add(cmp.Or(r.ReportEvery, r.every))
	}
	r.keepWelcome()
	if !now.Before(r.renewAt) {
		r.renew(ctx, now)
	}
	if r.knowsGoneJobs() { // they wait for the answer
		r.urgent, r.lookAt = true, now.Add(leastGap)
	}
	return nil
}

// join turns the token into a key. What the token is worth is lost with a key that cannot
// be stored, so that storing is tried first.
func (r *Reporter) join(ctx context.Context, now time.Time) error {
	if err := r.state.SaveIdentity(Identity{NodeID: r.NodeID, Earlier: r.id.Earlier}); err != nil {
		return fmt.Errorf("before joining: %w", err)
	}
	api, err := client.New(r.URL, r.Token.Reveal(), r.HTTP)
	if err != nil {
		return err
	}
	got, err := api.JoinNode(ctx, r.NodeID, contract.NodeJoin{BootID: r.BootID})
	if err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	if got.NodeID != r.NodeID || got.Key == "" || strings.ContainsAny(got.Key, " \r\n") {
		return errors.New("joining: the answer has no key of this node: is that address the control plane's?")
	}
	r.Token = obs.Secret{} // it is worth nothing any more
	r.Log.InfoContext(ctx, "joined", "node", r.NodeID)
	r.useKey(got, now)
	return nil
}

func (r *Reporter) useKey(got contract.NodeJoined, now time.Time) {
	r.keepEarlier()
	r.id.Key, r.unsaved = got.Key, true
	r.showKey()
	r.renewAt = now.Add(time.Duration(got.ExpiresInSeconds) * time.Second / 2)
	r.keepIdentity()
}

// renew gets another key. The one at hand goes on until then, whatever comes of it; what the
// clock of this machine says does not matter, as a daemon that begins renews at once.
func (r *Reporter) renew(ctx context.Context, now time.Time) {
	r.renewAt = now.Add(tryRenewal)
	api, err := client.New(r.URL, r.id.Key, r.HTTP)
	if err == nil {
		var got contract.NodeJoined
		if got, err = api.RenewNodeKey(ctx, r.NodeID, contract.NodeJoin{BootID: r.BootID}); err == nil {
			r.useKey(got, now)
			return
		}
	}
	r.Log.WarnContext(ctx, "the node's key was not renewed", "error", err)
}

func (r *Reporter) beat(ctx context.Context, now time.Time) error {
	api, err := client.New(r.URL, r.id.Key, r.HTTP)
	if err != nil {
		return err
	}
	r.seq++
	look := r.look
	if r.stateLost != "" {
		look.Problem = strings.TrimPrefix(look.Problem+"; "+r.stateLost, "; ")
		look.Problem = look.Problem[:min(len(look.Problem), 300)]
	}
	beat := contract.Heartbeat{Version: r.Version, BootID: r.BootID, Epoch: r.Epoch, Seq: r.seq, SentAt: now.UTC(),
		Clears: r.watcher.Memory().Clears, Look: look}
	if r.Holds != nil {
		beat.Look.Isolation, beat.Look.Unbounded = r.Holds.Isolation(), r.Holds.Unbounded()
		beat.Look.Containers = r.Holds.Runtime().Name
		beat.Holds, beat.Cleaned = r.Holds.List(), r.Holds.Cleaned()
	}
	if r.Jobs != nil {
		beat.Jobs = r.Jobs.Reports()
	}
	r.answerUnlisted(&beat)
	beat.Asked = r.asked.Swap(false)
	got, err := api.PutHeartbeat(ctx, r.NodeID, beat)
	if err != nil {
		if beat.Asked {
			r.asked.Store(true)
		}
		return fmt.Errorf("reporting: %w", err)
	}
	r.unlisted = unlisted{got.UnlistedHolds, got.UnlistedJobs}
	if r.Holds != nil {
		r.Holds.End(got.Ended)
		r.Holds.HearLeases(beat.Holds, got.Leases, now)
	}
	if r.Jobs != nil {
		r.Jobs.Stop(got.StopJobs)
		r.Jobs.Heed(got.Jobs, got.ForgetJobs, now)
	}
	r.watcher.Clear(got.Clears, now)
	if s := got.HeartbeatSeconds; s >= 1 && s <= 3600 {
		r.every = time.Duration(s) * time.Second
	}
	return nil
}

// retryAfter is how long to wait after a failure: as the server says, else a random time
// that grows.
func (r *Reporter) retryAfter(err error) time.Duration {
	var asked time.Duration
	if p, ok := errors.AsType[*client.Error](err); ok {
		asked = time.Duration(min(p.Problem.RetryAfter, 300)) * time.Second
	}
	if isCode(err, contract.CodeRateLimited) && asked > 0 { // the server is there, and says when
		return asked + httpx.Backoff(0, slowedJitter, slowedJitter, r.Random)
	}
	wait := httpx.Backoff(r.failures, firstRetry, lastRetry, r.Random)
	r.failures++
	return wait + asked
}

// final reports whether trying again cannot help. What a proxy in between refuses is no word
// of the control plane.
func final(err error) bool {
	return isCode(err, contract.CodeUnauthenticated) || isCode(err, contract.CodePermissionDenied) ||
		isCode(err, contract.CodeDaemonRefused)
}

func isCode(err error, code string) bool {
	p, ok := errors.AsType[*client.Error](err)
	return ok && p.Problem.Code == code
}
