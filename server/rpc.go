package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract/proto/compat/algogpu/algogpuconnect"
	"github.com/forewarm/forewarm/contract/proto/forewarm/v1/forewarmv1connect"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
	"github.com/forewarm/forewarm/server/tasks"
)

// rpc is a procedure that is called over gRPC, gRPC-Web or Connect.
type rpc struct {
	path    string
	policy  auth.Policy
	reads   bool
	streams bool // its answer has no end
	talks   bool // so has its request
	watches bool // it is told of this server's health
}

const (
	healthCheck   = "/" + grpchealth.HealthV1ServiceName + "/Check"
	healthWatched = "/" + grpchealth.HealthV1ServiceName + "/Watch"
	reflectedNow  = "/" + grpcreflect.ReflectV1ServiceName + "/ServerReflectionInfo"
	reflectedOld  = "/" + grpcreflect.ReflectV1AlphaServiceName + "/ServerReflectionInfo"
)

// rpcs are all procedures but those of the daemons of nodes.
var rpcs = []rpc{
	{path: forewarmv1connect.TaskServiceSubmitTaskProcedure, policy: auth.Member},
	{path: forewarmv1connect.TaskServiceGetTaskStatusProcedure, policy: auth.Viewer, reads: true},
	{path: forewarmv1connect.TaskServiceCancelTaskProcedure, policy: auth.Member},
	{path: forewarmv1connect.TaskServiceGetGPUStatusProcedure, policy: auth.Viewer, reads: true},
	{path: forewarmv1connect.TaskServiceTaskEventsProcedure, policy: auth.Viewer, reads: true, streams: true},
	{path: healthCheck, policy: auth.Public, reads: true},
	{path: healthWatched, policy: auth.Public, reads: true, streams: true, watches: true},
	{path: reflectedNow, policy: auth.Viewer, reads: true, streams: true, talks: true},
	{path: reflectedOld, policy: auth.Viewer, reads: true, streams: true, talks: true},
}

// oldRPCs are those of go-scheduler.
var oldRPCs = []rpc{
	{path: algogpuconnect.GPUSchedulerSubmitTaskProcedure, policy: auth.Member},
	{path: algogpuconnect.GPUSchedulerGetTaskStatusProcedure, policy: auth.Viewer, reads: true},
	{path: algogpuconnect.GPUSchedulerCancelTaskProcedure, policy: auth.Member},
	{path: algogpuconnect.GPUSchedulerGetGPUStatusProcedure, policy: auth.Viewer, reads: true},
	{path: algogpuconnect.GPUSchedulerTaskEventsProcedure, policy: auth.Viewer, reads: true, streams: true},
}

// mostCall bounds the body of a call, in bytes: a message, and what frames it.
const mostCall = tasks.MostMessage + 1<<10

// talkFor is how long somebody may look at what there is to call.
const talkFor = time.Minute

// addRPC adds what a procedure demands.
func (r routes) addRPC(p rpc) {
	op := operation.Operation{Policy: p.policy, Streams: p.streams}
	if !p.talks {
		op.MaxBody = mostCall
	}
	row := &route{Operation: op, known: true, bodyLimit: op.MaxBody, rpc: true, reads: p.reads}
	r[routeKey{http.MethodPost, p.path}] = row
}

// registerRPCs serves what programs call.
func (s *Server) registerRPCs() {
	mux, all := http.NewServeMux(), rpcs
	cfg := tasks.Config{API: inward.API{Handler: s.engine}, Feed: s.feed, Follow: s.api.Following, IDs: s.cfg.IDs,
		Clock: s.cfg.Clock, Log: s.cfg.Logger}
	services := []string{forewarmv1connect.TaskServiceName, grpchealth.HealthV1ServiceName}
	mux.Handle("/"+forewarmv1connect.TaskServiceName+"/", tasks.NewHandler(cfg))
	if s.cfg.Compat {
		services, all = append(services, algogpuconnect.GPUSchedulerName), slices.Concat(rpcs, oldRPCs)
		mux.Handle("/"+algogpuconnect.GPUSchedulerName+"/", tasks.NewOldHandler(cfg))
	}
	mux.Handle(grpchealth.NewHandler(health{s.readiness, services, s.watches}, connect.WithReadMaxBytes(mostCall)))
	names := grpcreflect.NewStaticReflector(services...)
	mux.Handle(grpcreflect.NewHandlerV1(names, connect.WithReadMaxBytes(mostCall)))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(names, connect.WithReadMaxBytes(mostCall)))
	for _, p := range all {
		s.byRoute.addRPC(p)
		s.engine.POST(p.path, s.serveRPC(p, mux))
	}
}

// serveRPC answers a call. The deadlines of a stream are set as it goes on.
func (s *Server) serveRPC(p rpc, handler http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx := comeInward(c)
		conn := http.NewResponseController(exchangeOf(c).ResponseWriter)
		extend := func(by time.Duration) {
			_ = conn.SetWriteDeadline(time.Now().Add(by)) //nolint:forbidigo // a socket's deadline is the machine's
		}
		if p.streams {
			ctx = tasks.WithExtend(ctx, func() { extend(tasks.TakeWithin) })
		}
		if p.talks {
			bounded, cancel := context.WithTimeout(ctx, talkFor)
			defer cancel()
			ctx = bounded
			extend(talkFor)
			_ = conn.SetReadDeadline(time.Now().Add(talkFor)) //nolint:forbidigo // as above
		}
		if p.watches {
			watching, done := s.watches.place(ctx, c, func() { extend(watchWithin) })
			if watching == nil {
				return
			}
			defer done()
			ctx = watching
		}
		handler.ServeHTTP(c.Writer, c.Request.WithContext(ctx))
	}
}

// comeInward returns a request's context, with which the API may be asked in its name.
func comeInward(c *gin.Context) context.Context {
	return inward.With(c.Request.Context(), inward.Outside{From: exchangeOf(c).from, RequestID: requestID(c),
		Path: c.Request.URL.Path})
}

// refusals writes errors as the protocol of a call has them.
var refusals = connect.NewErrorWriter()

// refuseCall answers a call with a problem as its protocol has it, if it has one.
func refuseCall(c *gin.Context, p *problem.Problem) bool {
	if x := exchangeOf(c); x == nil || !x.route.rpc || !refusals.IsSupported(c.Request) {
		return false
	}
	_ = refusals.Write(c.Writer, c.Request, tasks.Refusal(p)) // nothing is left to say
	return true
}
