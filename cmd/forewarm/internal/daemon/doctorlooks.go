package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/worker/queue/asynqueue"
)

const (
	clockApart = time.Second      // what two synchronized machines never are
	lateWork   = 30 * time.Second // what a worker that is busy may be behind
	longOpen   = 5 * time.Minute  // no transaction of Forewarm's is open as long
)

// examineAll looks at one thing after the other. What needs something that failed is left
// out, so that each fault is named once.
func (d *doctor) examineAll(ctx context.Context, f *flags) {
	cfg, err := f.readConfig()
	if err != nil {
		d.add("configuration", verdictFailed, "%v", err)
		return
	}
	cfg.readOnly = true
	d.cfg = cfg
	from := "the defaults and the environment"
	if cfg.file.path != "" {
		from = cfg.file.path
	}
	d.add("configuration", verdictOK, "read from %s", from)
	d.examineProxy()
	a := &app{cfg: cfg, log: slog.New(slog.DiscardHandler), clock: clock.System{}, version: d.version}
	peppered := d.examinePepper(a)
	d.examineDatabase(ctx, a, peppered)
	d.examineRedis(ctx)
	d.examineProvisioners(ctx, a)
}

// examineProxy misses the name of the proxy that must be in front of an API with TLS.
func (d *doctor) examineProxy() {
	if e, err := d.cfg.newEdge(); err != nil || !e.tls || len(d.cfg.Server.TrustedProxies) > 0 {
		return
	}
	d.add("proxy", verdictWarning, "server.public_url has https, so that a proxy is in front, and server.trusted_proxies "+
		"names none: all its clients share the bounds of one address, such as 16 downloads of the nodes' daemon at a time; "+
		"name the proxy there, such as [127.0.0.1]")
}

// examinePepper finds the pepper without making one.
func (d *doctor) examinePepper(a *app) (found bool) {
	if err := d.cfg.hasPepper(); err != nil {
		d.add("pepper", verdictFailed, "%v", err)
		return false
	}
	var err error
	if a.pepper, err = loadPepper(d.cfg); err != nil {
		d.add("pepper", verdictFailed, "%v", err)
		return false
	}
	from := "set in the configuration"
	if d.cfg.Pepper.IsZero() {
		from = "kept in " + filepath.Join(d.cfg.DataDir, "pepper")
	}
	d.add("pepper", verdictOK, "%s", from)
	return true
}

// examineDatabase opens the ledger, and closes it again.
func (d *doctor) examineDatabase(ctx context.Context, a *app, peppered bool) {
	if file, own := strings.CutPrefix(d.cfg.databaseURL(), "sqlite://"); own {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			d.add("database", verdictFailed, "%s does not exist: run forewarm up or forewarm migrate, which make it",
				obs.ScrubURL(d.cfg.databaseURL()))
			return
		}
	}
	began := a.clock.Now()
	if err := a.connectLedger(ctx); err != nil {
		d.add("database", verdictFailed, "%v", err)
		return
	}
	defer func() { _ = a.store.Close() }() // nothing was written
	version, err := a.store.ServerVersion(ctx)
	if err != nil {
		d.add("database", verdictFailed, "%v", err)
		return
	}
	d.add("database", verdictOK, "%s at %s, connected in %s", version, obs.ScrubURL(d.cfg.databaseURL()),
		a.clock.Now().Sub(began).Round(time.Millisecond))
	switch refused, err := sqlledger.RefusesWrites(ctx, a.store); {
	case err != nil:
		d.add("database", verdictFailed, "%v", err)
	case refused != "":
		d.add("database", verdictFailed, "%s", refused)
	}
	if d.examineSchema(ctx, a) {
		if peppered {
			d.examineKeys(ctx, a)
		}
		d.examineScheduling(ctx, a)
		d.examineWork(ctx, a)
		d.examinePeers(ctx, a)
	}
	d.examineServer(ctx, a)
}

func (d *doctor) examineSchema(ctx context.Context, a *app) (fits bool) {
	have, want, err := a.store.SchemaVersion(ctx)
	switch {
	case err != nil:
		d.add("schema", verdictFailed, "%v", err)
	case have < want:
		d.add("schema", verdictFailed, "the database has %d and this program needs %d: run forewarm migrate", have, want)
	case have > want:
		d.add("schema", verdictFailed, "the database has %d and this program knows %d: a newer program has changed it; "+
			"update this one", have, want)
	default:
		d.add("schema", verdictOK, "%d, as this program needs it", have)
	}
	return err == nil && have == want
}

// examineKeys sees whether the stored keys were made with this pepper.
func (d *doctor) examineKeys(ctx context.Context, a *app) {
	a.openVerbs(a.store)
	if err := a.checkPepper(ctx); err != nil {
		d.add("keys", verdictFailed, "%v", err)
		return
	}
	d.add("keys", verdictOK, "were made with this pepper")
}

// examineWork sees whether workers do what is due, and whether their clock is right.
func (d *doctor) examineWork(ctx context.Context, a *app) {
	var now, late time.Time
	var working bool
	var workers []ledger.Worker
	asked := a.clock.Now()
	err := a.store.Read(ctx, func(r ledger.Reader) (err error) {
		now = r.Now()
		if workers, err = r.Workers(); err != nil {
			return err
		}
		late, working, err = r.LateSince()
		return err
	})
	if err != nil {
		d.add("workers", verdictFailed, "%v", err)
		return
	}
	answered := a.clock.Now()
	d.judgeWorkers(workers, now, late, working)
	switch apart := max(asked.Sub(now), now.Sub(answered)); {
	case apart > clockApart:
		d.add("clock", verdictWarning, "this machine's clock and the database's are %s apart: synchronize both (chrony, "+
			"systemd-timesyncd)", phrase.Length(apart.Round(time.Second)))
	default:
		d.add("clock", verdictOK, "agrees with the database's")
	}
}

// judgeWorkers says which workers are there, and whether they keep up.
func (d *doctor) judgeWorkers(all []ledger.Worker, now, late time.Time, working bool) {
	behind := now.Sub(late)
	isLate := !late.IsZero() && behind >= lateWork
	there := hostsOf(all, now)
	switch {
	case len(there) == 0 && isLate && !working:
		d.add("workers", verdictFailed, "%s, and work has been due for %s: %s", lastWorker(all, now),
			phrase.Length(behind.Round(time.Second)), d.startWorker())
	case len(there) == 0:
		d.add("workers", verdictWarning, "%s; nothing is started, made ready, cleaned or removed before one is there: %s",
			lastWorker(all, now), d.startWorker())
	case isLate:
		d.add("workers", verdictWarning, "work has been due for %s: %s (on %s) busy with other work; start another",
			phrase.Length(behind.Round(time.Second)), phrase.Count(len(there), "worker")+isOrAre(len(there)),
			strings.Join(there, ", "))
	default:
		d.add("workers", verdictOK, "%s there (on %s), and nothing is late",
			phrase.Count(len(there), "worker")+isOrAre(len(there)), strings.Join(there, ", "))
	}
}

// startWorker is how a worker of this configuration is started.
func (d *doctor) startWorker() string {
	if d.cfg.isEmbedded() {
		return "start forewarm up"
	}
	return "start forewarm worker"
}

// hostsOf says where the workers run that are there now.
func hostsOf(all []ledger.Worker, now time.Time) (hosts []string) {
	for _, w := range all {
		if w.Until.After(now) {
			hosts = append(hosts, w.Host)
		}
	}
	return hosts
}

// lastWorker says of workers that are all gone which was there last.
func lastWorker(all []ledger.Worker, now time.Time) string {
	if len(all) == 0 {
		return "no worker has been seen yet"
	}
	return fmt.Sprintf("no worker is there; the last one, on %s, was seen %s", all[0].Host,
		ledger.FormatTimeSeen(all[0].Seen, now))
}

// examineServer asks for what makes a database lose data or grow slow.
func (d *doctor) examineServer(ctx context.Context, a *app) {
	settings, err := a.store.SettingWarnings(ctx)
	if err == nil {
		var upkeep []string
		upkeep, err = a.store.UpkeepWarnings(ctx, longOpen)
		settings = append(settings, upkeep...)
	}
	if err != nil {
		d.add("upkeep", verdictFailed, "%v", err)
		return
	}
	d.addDoubts("upkeep", settings)
	if len(settings) == 0 {
		d.add("upkeep", verdictOK, "no setting loses data, and no table grows slow")
	}
}

func (d *doctor) examineRedis(ctx context.Context) {
	if d.cfg.isEmbedded() {
		d.add("redis", verdictSkipped, "none is configured: messages stay inside the process")
		return
	}
	q, err := asynqueue.New(asynqueue.Config{URL: d.cfg.Redis, Namespace: d.cfg.Deployment})
	if err != nil {
		d.add("redis", verdictFailed, "%v", err)
		return
	}
	defer func() { _ = q.Close() }() // nothing was written
	ctx, cancel := context.WithTimeout(ctx, redisLook)
	defer cancel()
	version, doubts, err := q.Inspect(ctx)
	if err != nil {
		d.add("redis", verdictFailed, "Redis at %s: %s; start it, or correct its URL (FOREWARM_REDIS); the workers read the "+
			"database until it answers", obs.ScrubURL(d.cfg.Redis.Reveal()), httpx.DescribeFailure(err, "its address"))
		return
	}
	d.add("redis", verdictOK, "Redis %s at %s", version, obs.ScrubURL(d.cfg.Redis.Reveal()))
	d.addDoubts("redis", doubts)
}

// examineProvisioners asks each for its offers, which needs its credentials.
func (d *doctor) examineProvisioners(ctx context.Context, a *app) {
	provs, err := a.makeProvisioners()
	if err == nil {
		a.provs = provs
		err = a.knowsProvisioners()
	}
	if err == nil {
		at := d.cfg.Server.PublicURL
		if at == "" && d.cfg.isEmbedded() {
			at = "http://" + d.cfg.Listen
		}
		_, err = preparePrograms(a, at)
	}
	if err != nil {
		d.add("provisioner", verdictFailed, "%v", err)
		return
	}
	if len(provs) == 0 {
		d.add("provisioner", verdictSkipped, "none is configured: forewarm up adds this machine's GPUs or a simulation, "+
			"and a server needs none")
	}
	for _, p := range provs {
		ctx, cancel := context.WithTimeout(ctx, tryTime)
		offers, err := p.Offers(ctx)
		cancel()
		switch {
		case err != nil:
			d.add("provisioner", verdictFailed, "%s: %v", p.Name(), err)
		case len(offers) == 0:
			d.add("provisioner", verdictWarning, "%s answers, and offers no machine", p.Name())
		default:
			d.add("provisioner", verdictOK, "%s offers %s", p.Name(), phrase.Count(len(offers), "machine type"))
		}
	}
}
