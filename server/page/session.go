package page

import (
	"encoding/base64"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
)

const (
	cookieName  = "forewarm_session"
	sessionLife = 12 * time.Hour
	tokenLife   = 10 * time.Minute
	maxSessions = 1000
)

// session is one signed-in browser. An empty key id is who came by the one-time
// link, with an operator's eyes.
type session struct {
	keyID string
	until time.Time
}

// sessions live in memory: a restart signs everybody out.
type sessions struct {
	clock  clock.Clock
	random io.Reader

	mu         sync.Mutex
	all        map[string]session
	token      obs.Secret // empty once used
	tokenUntil time.Time
}

func newSessions(c clock.Clock, random io.Reader, token obs.Secret) *sessions {
	return &sessions{clock: c, random: random, all: map[string]session{}, token: token, tokenUntil: c.Now().Add(tokenLife)}
}

func (s *sessions) find(id string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.all[id]
	return found, ok && s.clock.Now().Before(found.until)
}

// begin makes a session and returns its id, which is its only proof.
func (s *sessions) begin(keyID string) (string, error) {
	var raw [32]byte
	if _, err := io.ReadFull(s.random, raw[:]); err != nil {
		return "", err
	}
	id := base64.RawURLEncoding.EncodeToString(raw[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for other, v := range s.all {
		if !now.Before(v.until) {
			delete(s.all, other)
		}
	}
	if len(s.all) >= maxSessions {
		clear(s.all)
	}
	s.all[id] = session{keyID: keyID, until: now.Add(sessionLife)}
	return id, nil
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// redeem uses up the one-time link.
func (s *sessions) redeem(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token.IsZero() || !s.clock.Now().Before(s.tokenUntil) || !s.token.Equal(obs.NewSecret(token)) {
		return false
	}
	s.token = obs.Secret{}
	return true
}

// signInForm redeems a one-time link, or asks for an API key.
func (p *Page) signInForm(c *gin.Context) {
	token := c.Query("t")
	if token == "" {
		p.render(c, http.StatusOK, "login.html", "")
		return
	}
	if !p.sessions.redeem(token) {
		p.Failures.Allow(c.ClientIP())
		p.render(c, http.StatusForbidden, "login.html", "This link was used already, or is too old. Sign in with an API key.")
		return
	}
	p.enter(c, "")
}

func (p *Page) signIn(c *gin.Context) {
	if err := http.NewCrossOriginProtection().Check(c.Request); err != nil {
		p.render(c, http.StatusForbidden, "login.html", "The form must be sent from this page.")
		return
	}
	if ok, _ := p.Failures.Check(c.ClientIP()); !ok {
		p.render(c, http.StatusTooManyRequests, "login.html", "Too many wrong keys came from this address. Wait a minute.")
		return
	}
	actor, err := p.Auth.Key(c.Request.Context(), c.PostForm("key"))
	if err != nil || actor.Kind == ledger.AgentKey {
		p.Failures.Allow(c.ClientIP())
		p.render(c, http.StatusForbidden, "login.html", "That is not a person's valid API key.")
		return
	}
	p.enter(c, actor.KeyID)
}

func (p *Page) enter(c *gin.Context, keyID string) {
	id, err := p.sessions.begin(keyID)
	if err != nil {
		p.Log.ErrorContext(c.Request.Context(), "beginning a session failed", "error", err)
		p.render(c, http.StatusInternalServerError, "login.html", "The session could not be begun.")
		return
	}
	setCookie(c, id, int(sessionLife/time.Second))
	c.Redirect(http.StatusSeeOther, "/")
}

func (p *Page) signOut(c *gin.Context) {
	if err := http.NewCrossOriginProtection().Check(c.Request); err != nil {
		p.render(c, http.StatusForbidden, "login.html", "The form must be sent from this page.")
		return
	}
	if id, err := c.Cookie(cookieName); err == nil {
		p.sessions.end(id)
	}
	setCookie(c, "", -1)
	c.Redirect(http.StatusSeeOther, "/login")
}

func setCookie(c *gin.Context, value string, maxAge int) {
	http.SetCookie(c.Writer, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: c.Request.TLS != nil,
	})
}
