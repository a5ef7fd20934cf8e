package admission_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// TestARecordIsWrittenAsJSON: every field of every part, set or not, is written as
// encoding/json writes it, so that records and seals of all versions compare.
func TestARecordIsWrittenAsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r admission.Record
		fillValue(t, reflect.ValueOf(&r).Elem(), 0)
		want, wrong := json.Marshal(r)
		text, err := r.Encode()
		if wrong != nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, string(want), string(text))
	})
}

// fillValue draws a value, in which anything may be zero.
func fillValue(t *rapid.T, v reflect.Value, depth int) {
	if rapid.IntRange(0, 2).Draw(t, "zero") == 0 {
		return
	}
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Unix(rapid.Int64Range(-1e11, 3e11).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).
			In(time.FixedZone("", rapid.SampledFrom([]int{0, 3600, -1800}).Draw(t, "zone")))
		if rapid.Bool().Draw(t, "UTC") {
			*at = at.UTC()
		}
		return
	case *quota.Limit:
		*at = quota.AtMost(rapid.Int64Range(-1, 3).Draw(t, "limit"))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillValue(t, v.Field(i), depth)
		}
	case reflect.Array:
		for i := range v.Len() {
			fillValue(t, v.Index(i), depth)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(t, "length"), 2))
		for i := range v.Len() {
			if depth < 2 {
				fillValue(t, v.Index(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(t, v.Elem(), depth+1)
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.StringMatching(`[a-z<&"\\ ]{0,5}`), rapid.String()).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	default:
		v.SetInt(rapid.Int64Range(-3, 1e12).Draw(t, "number"))
	}
}

func BenchmarkEncodeRecord(b *testing.B) {
	record := admission.NewRecord(newRequest(reservation.Guaranteed, 1, 4, hoursAhead(1, 3)), emptyView())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := record.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
