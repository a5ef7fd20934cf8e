package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

const (
	outputAtOnce = 16                     // parts of output that one look reads
	outputEvery  = 250 * time.Millisecond // new output is looked for
	outputSigns  = 15 * time.Second       // an empty line goes, so that nobody takes the stream for dead
)

// OutputOf says what of a job's output is wanted.
type OutputOf struct {
	Attempt int       `query:"attempt" minimum:"0" maximum:"1000000" doc:"Left out: the last one."`
	Rank    int       `query:"rank" minimum:"0" maximum:"100000" doc:"Of the node."`
	Offset  int64     `query:"offset" minimum:"0" doc:"Bytes to leave out, of all that it wrote there."`
	Tail    int64     `query:"tail" minimum:"0" doc:"Only so many of the last bytes that there are now; 0: all."`
	Since   time.Time `query:"since" doc:"Leave out what was written before, by the clock of the node."`
	Follow  bool      `query:"follow" doc:"Go on until the attempt is over."`
}

// describeOutput says what the lines of a stream of output are.
func (a *API) describeOutput(op *huma.Operation) {
	line := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[contract.JobOutput](), true, "JobOutput")
	op.Responses = map[string]*huma.Response{"200": {Description: "OK",
		Content: map[string]*huma.MediaType{"application/x-ndjson": {Schema: line}}}}
}

// getJobOutput checks before the stream begins what can be wrong.
func getJobOutput(ctx context.Context, a *API, in *struct {
	ByID
	OutputOf
},
) (*huma.StreamResponse, error) {
	actor, want := auth.From(ctx), in.OutputOf
	if want.Tail > 0 && !want.Since.IsZero() {
		return nil, problem.Parameter("since", "must not be given beside tail: each says where to begin")
	}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		j, err := r.Job(actor.Scope(), in.ID)
		if err != nil {
			return err
		}
		if want.Attempt > j.Attempt {
			return problem.Parameter("attempt", "must be one that there was")
		}
		if want.Rank >= j.Shape.Nodes {
			return problem.Parameter("rank", "must be below the number of the job's nodes")
		}
		if want.Tail > 0 {
			end, err := r.JobOutputEnd(j.ID, attemptOf(j, want), want.Rank)
			want.Offset = max(want.Offset, end-want.Tail)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		c := humagin.Unwrap(ctx)
		c.Header("Content-Type", "application/x-ndjson")
		c.Header("Cache-Control", "no-store")
		c.Status(http.StatusOK)
		f := outputFeed{a: a, jobID: in.ID, keyID: actor.KeyID, want: want, to: json.NewEncoder(c.Writer),
			flush: http.NewResponseController(c.Writer), raw: c.Writer}
		f.run(c.Request.Context())
	}}, nil
}

func attemptOf(j job.Job, want OutputOf) int {
	if want.Attempt > 0 {
		return want.Attempt
	}
	return max(j.Attempt, 1)
}

// outputFeed sends a job's output to one reader.
type outputFeed struct {
	a            *API
	jobID, keyID string
	want         OutputOf
	to           *json.Encoder
	raw          http.ResponseWriter
	flush        *http.ResponseController
	sent         time.Time
}

// run sends what there is, and what comes if that is wanted. The key is looked at again before each
// look, as a stream may outlive it.
func (f *outputFeed) run(ctx context.Context) {
	_ = f.flush.SetWriteDeadline(time.Time{})
	tick := time.NewTicker(outputEvery)
	defer tick.Stop()
	f.sent = f.a.Clock.Now()
	for {
		over, err := f.step(ctx)
		if err != nil {
			f.cut()
		}
		if err != nil || over {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-f.a.Sessions.Leaving():
			f.cut()
			return
		case <-tick.C:
		}
	}
}

// cut ends the stream so that its reader sees that it is not the end of the output.
func (f *outputFeed) cut() { _ = f.flush.SetWriteDeadline(time.Unix(1, 0)) }

// step sends what is new, and reports whether nothing more is to come.
func (f *outputFeed) step(ctx context.Context) (over bool, err error) {
	actor, _, err := f.a.Auth.Watch(ctx, f.keyID)
	if err != nil {
		return false, err
	}
	for more := true; more; {
		var parts []ledger.JobOutput
		err := f.a.readSnapshot(ctx, func(r ledger.Reader) error {
			j, err := r.Job(actor.Scope(), f.jobID)
			if err != nil {
				return err
			}
			f.want.Attempt = attemptOf(j, f.want)
			over = !f.want.Follow || f.want.Attempt < j.Attempt || f.want.Attempt == j.Attempt && !j.HasGPUs() || j.Over()
			parts, err = r.JobOutput(j.ID, f.want.Attempt, f.want.Rank, f.want.Offset, outputAtOnce)
			return err
		})
		if err != nil {
			return false, err
		}
		if err := f.send(parts); err != nil {
			return false, err
		}
		more = len(parts) == outputAtOnce
	}
	return over, f.signLife()
}

func (f *outputFeed) send(parts []ledger.JobOutput) error {
	for _, p := range parts {
		at := p.Start
		for _, piece := range p.Pieces {
			from, end := at, at+int64(len(piece.Data))
			if at = end; end <= f.want.Offset {
				continue
			}
			if piece.At.Before(f.want.Since) {
				f.want.Offset = end
				continue
			}
			f.want.Since = time.Time{} // a clock that is set back leaves no hole
			data := piece.Data
			if from < f.want.Offset {
				data, from = data[f.want.Offset-from:], f.want.Offset
			}
			if err := f.to.Encode(contract.JobOutput{Attempt: p.Attempt, Rank: p.Rank, Offset: from,
				Stream: piece.Stream, At: piece.At.UTC(), Data: data, LeftOut: from - f.want.Offset}); err != nil {
				return err
			}
			f.want.Offset, f.sent = end, f.a.Clock.Now()
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return f.flush.Flush()
}

// signLife keeps a stream in which nothing goes from being taken for dead.
func (f *outputFeed) signLife() error {
	if now := f.a.Clock.Now(); f.want.Follow && now.Sub(f.sent) >= outputSigns {
		f.sent = now
		if _, err := f.raw.Write([]byte("\n")); err != nil {
			return err
		}
		return f.flush.Flush()
	}
	return nil
}
