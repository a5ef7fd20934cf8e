package server

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"
)

// exchange is a request's response writer, and what every part of the middleware
// wants to know of the request: it is looked up once.
type exchange struct {
	gin.ResponseWriter
	route *route
	from  netip.Addr    // who sends it; see httpx.Proxies
	wait  time.Duration // for which the route lets the request wait for its outcome
}

// exchangeOf is that of a request, which guardConnection made.
func exchangeOf(c *gin.Context) *exchange {
	x, _ := c.Writer.(*exchange)
	return x
}

// SetReadDeadline does nothing: the read deadline is set by the server alone. huma
// sets one of its own for every operation with a body, and never clears it.
func (*exchange) SetReadDeadline(time.Time) error { return nil }

// Unwrap gives http.ResponseController the way to everything else.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
