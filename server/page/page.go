// Package page is the plain page at /: one screen that answers whether people
// wait, what not waiting costs, and what is warm for whom.
//
// It is rendered on the server and works without JavaScript; a small script of
// our own refreshes it. People who sign in see what their API key may see.
package page

import (
	"bytes"
	"embed"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/plaintext"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/events"
)

// Config is what the page works with.
type Config struct {
	Ledger  *verbs.Ledger
	Clock   clock.Clock
	Log     *slog.Logger
	Feed    *events.Feed
	Auth    *auth.Authenticator
	Limits  Limits
	Proxies httpx.Proxies
	Secure  func(*http.Request) bool                      // the client speaks TLS
	Failed  func(door, keyPrefix string, from netip.Addr) // told of each failed sign-in
	Random  io.Reader
	Open    bool       // no sign-in: everybody sees everything
	Token   obs.Secret // of the one-time link; empty for none
	Version string
}

// Limits are the page's own: what happens at the API uses none of them up.
type Limits struct {
	Keys   *auth.Limiter // wrong keys, by key and address
	Links  *auth.Limiter // wrong sign-in links, by address
	Logins *auth.Limiter // sessions begun, by key
}

//go:embed assets
var assets embed.FS

//go:embed templates
var templates embed.FS

var pages = template.Must(template.ParseFS(templates, "templates/*.html"))

// Page serves the page. It is safe for concurrent use.
type Page struct {
	Config
	sessions *sessions
}

// Register adds the page's routes.
func Register(e *gin.Engine, cfg Config) {
	p := &Page{Config: cfg, sessions: newSessions(cfg.Clock, cfg.Random, cfg.Token)}
	e.GET("/", p.showPage)
	e.GET("/login", p.signInForm)
	e.POST("/login", p.signIn)
	e.POST("/logout", p.signOut)
	e.GET("/assets/:file", serveAsset)
}

// showPage renders the page, or leads to the sign-in.
func (p *Page) showPage(c *gin.Context) {
	scope, ok := p.visitorScope(c)
	if !ok {
		c.Redirect(http.StatusSeeOther, "/login")
		return
	}
	v, err := p.readView(c.Request.Context(), scope)
	if err != nil {
		p.Log.ErrorContext(c.Request.Context(), "reading for the page failed", "error", err)
		p.renderTemplate(c, http.StatusServiceUnavailable, "trouble.html", c.Writer.Header().Get("Request-Id"))
		return
	}
	p.renderTemplate(c, http.StatusOK, "page.html", v)
}

// visitorScope is what the visitor may see.
func (p *Page) visitorScope(c *gin.Context) (ledger.Scope, bool) {
	if p.Open {
		return ledger.Scope{All: true}, true
	}
	cookie, err := c.Cookie(p.cookieName(c))
	if err != nil {
		return ledger.Scope{}, false
	}
	s, ok := p.sessions.findSession(cookie)
	if !ok {
		return ledger.Scope{}, false
	}
	httpx.Proved(c.Request.Context())
	if s.keyID == "" {
		return ledger.Scope{All: true}, true
	}
	actor, err := p.Auth.ByID(c.Request.Context(), s.keyID)
	if err != nil {
		return ledger.Scope{}, false
	}
	return actor.Scope(), true
}

// renderTemplate sends a template, whole or not at all. What was stored before such
// characters were refused, or comes from a provider, shows and does nothing.
func (p *Page) renderTemplate(c *gin.Context, status int, name string, data any) {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, name, data); err != nil {
		p.Log.ErrorContext(c.Request.Context(), "rendering the page failed", "error", err)
		c.String(http.StatusInternalServerError, "The page could not be rendered.\n")
		return
	}
	c.Data(status, "text/html; charset=utf-8", []byte(plaintext.EscapeLines(out.String())))
}

var kinds = map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}

func serveAsset(c *gin.Context) {
	kind, ok := kinds[c.Param("file")]
	if !ok {
		c.String(http.StatusNotFound, "There is no such file.\n")
		return
	}
	data, err := assets.ReadFile("assets/" + c.Param("file"))
	if err != nil {
		c.String(http.StatusNotFound, "There is no such file.\n")
		return
	}
	c.Header("Cache-Control", "max-age=60")
	c.Data(http.StatusOK, kind, data)
}
