package page

import (
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
)

const (
	cookieName      = "forewarm_session"
	sessionLife     = 12 * time.Hour
	tokenLife       = 10 * time.Minute
	sessionsPerKey  = 20
	sessionsPerTeam = 1000 // of the keys of one organization
)

// session is one signed-in browser. An empty key id is who came by the one-time
// link, with an operator's eyes.
type session struct {
	keyID        string
	organization string
	begun        time.Time
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
	return &sessions{clock: c, random: random, all: map[string]session{}, token: token,
		tokenUntil: c.Now().Add(tokenLife)}
}

func (s *sessions) findSession(id string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.all[id]
	return found, ok && s.clock.Now().Before(found.begun.Add(sessionLife))
}

// beginSession makes a session and returns its id, which is its only proof. Beyond the
// bounds it ends the oldest one of the same key, or else organization: nobody is
// signed out by a stranger.
func (s *sessions) beginSession(keyID, organization string) (string, error) {
	var raw [32]byte
	if _, err := io.ReadFull(s.random, raw[:]); err != nil {
		return "", err
	}
	id := base64.RawURLEncoding.EncodeToString(raw[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	maps.DeleteFunc(s.all, func(_ string, v session) bool { return !now.Before(v.begun.Add(sessionLife)) })
	s.endOldest(sessionsPerKey, func(v session) bool { return v.keyID == keyID })
	s.endOldest(sessionsPerTeam, func(v session) bool { return v.organization == organization })
	s.all[id] = session{keyID: keyID, organization: organization, begun: now}
	return id, nil
}

// endOldest makes room for one more of those that are the same.
func (s *sessions) endOldest(most int, same func(session) bool) {
	oldest, count := "", 0
	for id, v := range s.all {
		if !same(v) {
			continue
		}
		if count++; oldest == "" || v.begun.Before(s.all[oldest].begun) {
			oldest = id
		}
	}
	if count >= most {
		delete(s.all, oldest)
	}
}

func (s *sessions) endSession(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// redeemToken uses up the one-time link.
func (s *sessions) redeemToken(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token.IsZero() || !s.clock.Now().Before(s.tokenUntil) || !s.token.Equal(obs.NewSecret(token)) {
		return false
	}
	s.token = obs.Secret{}
	return true
}

// signInForm redeems a one-time link, or asks for an API key. A good link is
// good however many bad ones came before it.
func (p *Page) signInForm(c *gin.Context) {
	token := c.Query("t")
	if token == "" {
		p.renderTemplate(c, http.StatusOK, "login.html", "")
		return
	}
	if p.sessions.redeemToken(token) {
		p.enterSession(c, "", "")
		return
	}
	from := p.Proxies.Client(c.Request)
	p.Failed("link", "", from)
	if ok, after := p.Limits.Links.Allow(httpx.Network(from).String()); !ok {
		p.slowDown(c, after, "Too many wrong links came from this address. Wait a minute.")
		return
	}
	p.renderTemplate(c, http.StatusForbidden, "login.html",
		"This link was used already, or is too old. Sign in with an API key.")
}

func (p *Page) signIn(c *gin.Context) {
	if err := http.NewCrossOriginProtection().Check(c.Request); err != nil {
		p.renderTemplate(c, http.StatusForbidden, "login.html", "The form must be sent from this page.")
		return
	}
	from := p.Proxies.Client(c.Request)
	actor, err := p.Auth.Key(c.Request.Context(), c.PostForm("key"), from)
	if err == nil && actor.Kind != ledger.PersonKey {
		p.renderTemplate(c, http.StatusForbidden, "login.html", "That is not a person's valid API key.")
		return
	}
	if err != nil {
		p.refuseSignIn(c, from, err)
		return
	}
	if ok, after := p.Limits.Logins.Allow(actor.KeyID); !ok {
		p.slowDown(c, after, "This key signs in too often. Wait a minute.")
		return
	}
	p.enterSession(c, actor.KeyID, actor.OrganizationID)
}

// refuseSignIn answers a sign-in that failed, and counts it where the key was wrong.
func (p *Page) refuseSignIn(c *gin.Context, from netip.Addr, err error) {
	wrong, ok := errors.AsType[*auth.WrongKeyError](err)
	if !ok {
		p.Log.ErrorContext(c.Request.Context(), "signing in failed", "error", err)
		p.renderTemplate(c, http.StatusServiceUnavailable, "trouble.html", c.Writer.Header().Get("Request-Id"))
		return
	}
	p.Failed("page", wrong.Prefix, from)
	if ok, after := p.Limits.Keys.Allow(wrong.Prefix + " " + httpx.Network(from).String()); !ok {
		p.slowDown(c, after, "This key is wrong and was sent too often from this address. Wait a minute.")
		return
	}
	p.renderTemplate(c, http.StatusForbidden, "login.html", "That is not a person's valid API key.")
}

func (p *Page) slowDown(c *gin.Context, after time.Duration, text string) {
	c.Header("Retry-After", strconv.Itoa(max(1, int(math.Ceil(after.Seconds())))))
	p.renderTemplate(c, http.StatusTooManyRequests, "login.html", text)
}

func (p *Page) enterSession(c *gin.Context, keyID, organization string) {
	id, err := p.sessions.beginSession(keyID, organization)
	if err != nil {
		p.Log.ErrorContext(c.Request.Context(), "beginning a session failed", "error", err)
		p.renderTemplate(c, http.StatusInternalServerError, "login.html", "The session could not be begun.")
		return
	}
	p.setCookie(c, id, int(sessionLife/time.Second))
	c.Redirect(http.StatusSeeOther, "/")
}

func (p *Page) signOut(c *gin.Context) {
	if err := http.NewCrossOriginProtection().Check(c.Request); err != nil {
		p.renderTemplate(c, http.StatusForbidden, "login.html", "The form must be sent from this page.")
		return
	}
	if id, err := c.Cookie(p.cookieName(c)); err == nil {
		p.sessions.endSession(id)
	}
	p.setCookie(c, "", -1)
	c.Redirect(http.StatusSeeOther, "/login")
}

// cookieName has the prefix by which browsers keep others from setting the
// cookie: pages of the same name without TLS, and of names below it.
func (p *Page) cookieName(c *gin.Context) string {
	if p.Secure(c.Request) {
		return "__Host-" + cookieName
	}
	return cookieName
}

func (p *Page) setCookie(c *gin.Context, value string, maxAge int) {
	http.SetCookie(c.Writer, &http.Cookie{
		Name: p.cookieName(c), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: p.Secure(c.Request),
	})
}
