package api

import (
	"cmp"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// inputTags are the rests of the tags of parameters that are too long for their
// lines, by the type, or the operation whose input has no name, and the field.
var inputTags = map[string]reflect.StructTag{
	"allocateInput.Prefer": `doc:"wait=30 holds the answer for up to 30 seconds (at most 55), until the GPUs are ` +
		`there; Preference-Applied says for how many."`,
	"BookingFilter.Name": `doc:"Only those of this name. Names may be given again; the newest comes first."`,
	"BookingFilter.User": `doc:"Id or e-mail address of the person whose keys and schedules booked."`,
	"BookingFilter.Since": `doc:"Only those that had not ended by this time, even if they have since. For a ` +
		`reservation, its window counts."`,
	"BookingFilter.Until": `doc:"Only those that began before this time, including those that have ended. A ` +
		`reservation begins with its window, an allocation when it is requested."`,
	"JobsOf.Since": `doc:"Only those that were submitted at this time or later, including those that are over."`,
	"JobsOf.Until": `doc:"Only those that were submitted before this time, including those that are over."`,
	"BookingFilter.All": `doc:"Include those that have ended. Without it, and without a state or a time, only live ` +
		`ones are listed."`,
	"verifyJournal.Anchor":    `doc:"A seal kept elsewhere, as NUMBER:MAC; it must still be in the chain."`,
	"getCalendar.StepSeconds": `doc:"0: a step at each change."`,
	"calibration.Days":        `doc:"Windows that started within this many days before now."`,
	"GPUFilter.Organization":  `doc:"Id or name of who holds them; your own unless you are an operator."`,
	"NodeFilter.State": `enum:"requested,provisioning,booting,ready,draining,deprovisioning,gone,failed,lost,` +
		`quarantined,needs_attention"`,
	"NodeFilter.All": `doc:"Include those that have ended. Without it, and without a state, only live ones are listed."`,
	"costs.By": `enum:"pool,provisioner" doc:"Splits lines further; otherwise they are by payer and ` +
		`cause alone."`,
	"listReservations.Schedule": `doc:"Id or name of the schedule whose dates they are; instead of made_by."`,
	"Idempotency.Key": `patternDescription:"printable ASCII without spaces" doc:"Any text you choose. For 7 days, ` +
		`the same key with the same body has one effect and one answer; after that the key is forgotten, and the ` +
		`request would take effect again. A UUIDv7 or ULID says when it was made: one older than 7 days is refused ` +
		`instead (idempotency-key-expired)."`,
	"ByID.ID": `doc:"An id, or a name: that of a pool, organization, key or schedule, the e-mail address of a ` +
		`user, or, for operators, the id of a node at its provider. An id takes precedence over a name."`,
}

// completeParameters is completeTags for the parameters of an operation with an input
// of the type.
func completeParameters(doc *huma.OpenAPI, op *huma.Operation, input reflect.Type) (found []string) {
	for i := range input.NumField() {
		f := input.Field(i)
		if f.Anonymous {
			found = append(found, completeParameters(doc, op, f.Type)...)
			continue
		}
		key := cmp.Or(input.Name(), op.OperationID) + "." + f.Name
		rest, ok := inputTags[key]
		if !ok {
			continue
		}
		f.Tag += " " + rest
		name := cmp.Or(f.Tag.Get("query"), f.Tag.Get("header"), f.Tag.Get("path"))
		for _, p := range op.Parameters {
			if p.Name == name {
				fresh := huma.SchemaFromField(doc.Components.Schemas, f, "")
				fresh.Nullable = p.Schema.Nullable
				fresh.PrecomputeMessages()
				*p.Schema, p.Description = *fresh, fresh.Description
				found = append(found, key)
			}
		}
	}
	return found
}
