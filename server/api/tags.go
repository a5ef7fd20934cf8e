package api

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/contract"
)

// completeTags gives schemas what huma, which reads only the tags beside fields, has
// not seen: the rests of long tags. inputs are the operations' by their ids. It
// returns the fields that had a rest.
func completeTags(doc *huma.OpenAPI, inputs map[string]reflect.Type) (found []string) {
	registry := doc.Components.Schemas
	for name, schema := range registry.Map() {
		found = append(found, completeFields(registry, schema, registry.TypeFromRef("#/components/schemas/"+name))...)
	}
	for _, op := range operationsIn(doc) {
		found = append(found, completeParameters(doc, op, inputs[op.OperationID])...)
	}
	return found
}

func completeFields(registry huma.Registry, schema *huma.Schema, t reflect.Type) (found []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" { // its fields are its holder's
			found = append(found, completeFields(registry, schema, f.Type)...)
			continue
		}
		if whole := contract.Tag(t, f); whole != f.Tag {
			f.Tag = whole
			fresh, old := huma.SchemaFromField(registry, f, t.Name()+f.Name+"Struct"), schema.Properties[name]
			if _, said := whole.Lookup("nullable"); !said {
				fresh.Nullable = old.Nullable // of what may be left out: its holder says so
				fresh.PrecomputeMessages()
			}
			*old = *fresh // in its place, since checks hold on to it
			found = append(found, t.Name()+"."+f.Name)
		}
	}
	return found
}
