package server

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/server/auth"
)

// answerLevel is how much an answer is worth telling: what the server failed at more, and what changed nothing and went
// well, as most requests do, less. That counts for the regular reports of daemons, too; that one joins is told.
func answerLevel(c *gin.Context) slog.Level {
	status := c.Writer.Status()
	switch {
	case status >= http.StatusInternalServerError:
		return slog.LevelWarn
	case status >= http.StatusBadRequest:
		return slog.LevelInfo
	case c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead:
		return slog.LevelDebug
	case auth.From(c.Request.Context()).NodeID != "" && !strings.HasSuffix(c.FullPath(), "/join"):
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
