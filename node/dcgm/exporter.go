package dcgm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/forewarm/forewarm/internal/httpx"
)

const (
	// within is how long an exporter may take: a look waits for it.
	within = 3 * time.Second
	// mostPage bounds its page, in bytes: 16 GPUs with a hundred metrics each have half of it.
	mostPage = 1 << 20
)

// Exporter is a DCGM exporter.
type Exporter struct {
	url  string
	http *http.Client
}

// NewExporter returns the exporter at a URL such as http://127.0.0.1:9400/metrics. The error says what is wrong with
// it.
// Unless it may be anywhere, only loopback and private addresses are dialled, whatever a name resolves to.
func NewExporter(address string, anywhere bool) (*Exporter, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%q is no address of metrics: write it as in http://127.0.0.1:9400/metrics", address)
	case u.User != nil:
		return nil, errors.New("it must have no user and no password: they would be in each log that names it")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		if err := checkPlace(ip, anywhere); err != nil {
			return nil, err
		}
	}
	return &Exporter{url: address, http: httpx.NewClient(httpx.Config{Timeout: within, MaxBody: mostPage,
		UserAgent: "forewarm-node", Transport: newTransport(anywhere)})}, nil
}

// newTransport dials near addresses alone, unless it may dial any, and no program of somebody who holds GPUs here: that
// would tell of them what it likes.
func newTransport(anywhere bool) *http.Transport {
	dialer := &net.Dialer{Timeout: within, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading the address %s: %w", address, err)
		}
		return checkPlace(at.Addr(), anywhere)
	}}
	return &http.Transport{IdleConnTimeout: time.Minute, MaxIdleConns: 1,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			if at, held := httpx.HolderBehind(conn); held {
				_ = conn.Close()
				return nil, fmt.Errorf("what listens at %s is a program of somebody who holds GPUs here", at)
			}
			return conn, nil
		}}
}

// checkPlace refuses the addresses at which clouds hand out credentials, and, unless an exporter may be anywhere, all
// that are neither this machine's nor of a private network.
func checkPlace(ip netip.Addr, anywhere bool) error {
	ip = ip.Unmap()
	switch {
	case httpx.IsCloudMetadata(ip):
		return fmt.Errorf("%s is where a cloud hands out credentials, and no exporter's", ip)
	case !anywhere && !ip.IsLoopback() && !ip.IsPrivate():
		return fmt.Errorf("%s is neither of this machine nor of a private network, and dcgm_anywhere is not set", ip)
	}
	return nil
}

// read gets the exporter's page once, by the UUIDs of GPUs.
func (e *Exporter) read(ctx context.Context) (map[string]page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	answer, err := e.http.Do(request) //nolint:bodyclose // Drain closes it
	if err != nil {
		return nil, httpx.HideURL(err)
	}
	defer httpx.Drain(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %d", answer.StatusCode)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("reading its metrics: %w", err)
	}
	return parse(text)
}

// parse reads the text of a page.
func parse(text []byte) (map[string]page, error) {
	switch told := keepDCGM(text); {
	case len(text) > 0 && text[len(text)-1] != '\n':
		return nil, errors.New("reading its metrics: the last line has no end")
	case len(told) == 0:
		return nil, errors.New("reading its metrics: none begins with " + prefix)
	default:
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(told))
		if err != nil {
			return nil, fmt.Errorf("reading its metrics: %w", err)
		}
		return sortByGPU(families), nil
	}
}

// keepDCGM is the lines of a page that are DCGM's, with what describes them. Exporters have metrics of their own
// besides, and what is wrong with those is no matter here.
func keepDCGM(text []byte) (told []byte) {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(prefix)) || describes(line) {
			told = append(told, line...)
		}
	}
	return told
}

// describes reports whether a line is the HELP or TYPE of a metric of DCGM.
func describes(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("# "))
	if !ok {
		return false
	}
	word, name, _ := bytes.Cut(rest, []byte(" "))
	return (string(word) == "HELP" || string(word) == "TYPE") && bytes.HasPrefix(name, []byte(prefix))
}

// sortByGPU sorts the metrics of whole GPUs by their UUIDs.
func sortByGPU(families map[string]*dto.MetricFamily) map[string]page {
	all := map[string]page{}
	for name, family := range families {
		if slices.Contains(rates, name) && family.GetType() == dto.MetricType_COUNTER {
			continue
		}
		for _, m := range family.GetMetric() {
			uuid, whole := gpuOf(m)
			if !whole {
				continue
			}
			if all[uuid] == nil {
				all[uuid] = page{}
			}
			all[uuid][name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return all
}

// gpuOf is the UUID of the GPU that a metric is of, and whether it is of all of it: of MIG devices, only their parts
// of it are told.
func gpuOf(m *dto.Metric) (uuid string, whole bool) {
	for _, l := range m.GetLabel() {
		switch l.GetName() {
		case "UUID", "uuid":
			uuid = l.GetValue()
		case "GPU_I_ID", "GPU_I_PROFILE":
			if l.GetValue() != "" {
				return "", false
			}
		}
	}
	return uuid, uuid != ""
}
