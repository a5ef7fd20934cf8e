package app

import (
	"cmp"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/client"
)

// DefaultSlow is for how long nobody wonders about a server.
const DefaultSlow = 10 * time.Second

// slowDoer tells of an answer that takes long to come: once for a request.
type slowDoer struct {
	next client.Doer
	app  *App
}

// Do sends a request.
func (d slowDoer) Do(r *http.Request) (*http.Response, error) {
	if d.app.OnSlow != nil {
		server := r.URL.Scheme + "://" + r.URL.Host
		timer := time.AfterFunc(cmp.Or(d.app.SlowAfter, DefaultSlow), func() { d.app.OnSlow(server) })
		defer timer.Stop()
	}
	return d.next.Do(r)
}
