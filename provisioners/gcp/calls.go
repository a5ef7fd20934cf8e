//go:build clouds

package gcp

import (
	"context"
	"net/http"
	"slices"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// withDeadline bounds one call of the API.
func (c Config) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.RequestTimeout)
}

// getInstance returns the instance of that name, nil when the service says that
// there is none. That is no proof yet: it says the same when project or zone are
// wrong, which a list of the zone's operations tells apart.
func (c *Cloud) getInstance(ctx context.Context, zone, name string) (*compute.Instance, error) {
	api, err := c.computeService(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.config.withDeadline(ctx)
	defer cancel()
	found, err := api.Instances.Get(c.config.Project, zone, name).Context(ctx).Do()
	switch {
	case notFound(err):
		return nil, nil
	case err != nil:
		return nil, attempt{doing: "reading instance " + name}.callError(err)
	case found.Id == 0 || found.Name != name || lastSegment(found.Zone) != zone:
		return nil, provisioners.Errorf(provisioners.KindTransient,
			"reading instance %s: the answer is about something else", name)
	}
	return found, nil
}

const (
	pageSize  = 500
	mostPages = 100
)

// readPast reads the operations of a name. Google keeps finished ones for one hour
// at least, 14 days at most, see docs/provisioners/gcp.md.
func (c *Cloud) readPast(ctx context.Context, zone, name string) (past, error) {
	api, err := c.computeService(ctx)
	if err != nil {
		return past{}, err
	}
	var read past
	token := ""
	for range mostPages {
		page, err := c.config.operationsPage(ctx, api, zone, name, token)
		if err != nil {
			return past{}, attempt{doing: "reading the operations of instance " + name}.callError(err)
		}
		for _, op := range page.Items {
			read.addOperation(op, name)
		}
		if token = page.NextPageToken; token == "" {
			slices.SortStableFunc(read.inserts, func(a,
				b *compute.Operation) int {
				return parseTime(a.InsertTime).Compare(parseTime(b.InsertTime))
			})
			return read, nil
		}
	}
	return past{}, provisioners.Errorf(provisioners.KindTransient,
		"reading the operations of instance %s: more than %d pages", name, mostPages)
}

func (c Config) operationsPage(ctx context.Context, api *compute.Service, zone, name,
	token string) (*compute.OperationList, error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	call := api.ZoneOperations.List(c.Project, zone).Filter("targetLink:instances/" + name).MaxResults(pageSize)
	return call.PageToken(token).Context(ctx).Do()
}

// awaitOperation waits for an operation for as long as the config says, and returns it as
// it is then. Not done by then is no error; a wait that fails tells nothing.
func (c *Cloud) awaitOperation(ctx context.Context, zone string, op *compute.Operation) *compute.Operation {
	if op.Status == "DONE" || c.config.OperationWait == 0 {
		return op
	}
	api, err := c.computeService(ctx)
	if err != nil {
		return op
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.OperationWait)
	defer cancel()
	later, err := api.ZoneOperations.Wait(c.config.Project, zone, op.Name).Context(ctx).Do()
	if err != nil || later.Name != op.Name || later.TargetId != op.TargetId {
		return op
	}
	return later
}

// parseTime reads a time of Google's; what is none is the zero time.
func parseTime(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC().Truncate(time.Microsecond)
}

// readGuestAttributes reads what the machine wrote, by key. Nothing written is no error,
// and neither are attributes that are switched off: problem says so.
func (c *Cloud) readGuestAttributes(ctx context.Context, place ref,
	namespace string) (values map[string]string, problem string, err error) {
	api, err := c.computeService(ctx)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := c.config.withDeadline(ctx)
	defer cancel()
	answer, err := api.Instances.GetGuestAttributes(c.config.Project, place.zone,
		place.name).QueryPath(namespace + "/").Context(ctx).Do()
	failed := attempt{doing: "reading the guest attributes of " + place.name}.callError
	switch {
	case notFound(err):
		return nil, "", nil
	case err != nil && hasStatus(err, http.StatusForbidden) &&
		provisioners.KindOf(failed(err)) == provisioners.KindDenied:
		return nil, "its guest attributes may not be read", nil
	case err != nil:
		return nil, "", failed(err)
	case answer.QueryValue == nil:
		return nil, "", nil
	}
	values = map[string]string{}
	for _, entry := range answer.QueryValue.Items {
		if entry.Namespace == namespace {
			values[entry.Key] = entry.Value
		}
	}
	return values, "", nil
}
