package server

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/server/sessions"
)

// nodeServiceRoute is where the daemons of nodes have their streams.
const nodeServiceRoute = "POST /forewarm.v1.NodeService/:procedure"

// registerNodeService lets the daemons of nodes attach. Their streams have no deadlines of the
// connection: signs of life bound them.
func (s *Server) registerNodeService() {
	path, handler := s.sessions.Handler()
	s.engine.POST(path+":procedure", func(c *gin.Context) {
		conn := http.NewResponseController(exchangeOf(c).ResponseWriter)
		_ = conn.SetReadDeadline(time.Time{})
		_ = conn.SetWriteDeadline(time.Time{})
		handler.ServeHTTP(c.Writer, c.Request.WithContext(sessions.WithAbort(c.Request.Context(), func() {
			_ = conn.SetWriteDeadline(time.Unix(1, 0)) // long ago
		})))
	})
}
