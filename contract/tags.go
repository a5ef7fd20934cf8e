package contract

import (
	"maps"
	"reflect"
	"slices"
)

// tags are rests of struct tags, by type and field. A tag is one literal on one
// line: what is too long for the line stands at the end of the file instead.
type tags map[string]reflect.StructTag

var restOfTags = joinTags(accessTags, agentTags, auditTags, bookingTags, calendarTags, capacityTags,
	contractTags, costsTags, cyclesTags, decisionsTags, eventTags, explainTags, forecastsTags, identityTags,
	plansTags, prewarmTags, problemTags, quotaTags, recoveryTags, scheduleTags,
	sharesTags, nodeDaemonTags, jobTags, nodeJobTags)

func joinTags(all ...tags) tags {
	out := tags{}
	for _, t := range all {
		maps.Copy(out, t)
	}
	return out
}

// Tag returns the whole tag of a field of one of this package's types.
func Tag(of reflect.Type, f reflect.StructField) reflect.StructTag {
	rest, ok := restOfTags[of.Name()+"."+f.Name]
	if !ok || of.PkgPath() != reflect.TypeFor[Limits]().PkgPath() {
		return f.Tag
	}
	return f.Tag + " " + rest
}

// LongTags names the fields, as TYPE.FIELD, whose tag is more than what stands beside
// them.
func LongTags() []string { return slices.Sorted(maps.Keys(restOfTags)) }
