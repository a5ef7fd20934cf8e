package api

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/operation"
)

// TestEveryTypeIsEncodedAsByTheStandardLibrary: whatever values all that goes over the
// wire has, in both forms.
func TestEveryTypeIsEncodedAsByTheStandardLibrary(t *testing.T) {
	t.Parallel()
	release()
	_, doc, _ := Register(gin.New(), Config{Ledger: &verbs.Ledger{}, Clock: clock.System{}})
	registry := doc.Components.Schemas
	types := []reflect.Type{reflect.TypeFor[contract.PlannedCancel](), reflect.TypeFor[contract.PlannedClaim]()}
	for name := range registry.Map() {
		types = append(types, registry.TypeFromRef("#/components/schemas/"+name))
	}
	require.Greater(t, len(types), 50)
	random := rand.New(rand.NewPCG(1, 2))
	for _, typ := range types {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		for range 200 {
			v := reflect.New(typ)
			fill(random, v.Elem(), 0)
			requireSameEncoding(t, v)
		}
	}
}

func requireSameEncoding(t *testing.T, v reflect.Value) {
	t.Helper()
	want, wantErr := json.Marshal(v.Elem().Interface())
	got, err := operation.EncodeJSON(v.Interface(), true)
	require.Equal(t, wantErr == nil, err == nil, v.Type())
	if wantErr != nil {
		return
	}
	require.Equal(t, string(want), string(got), v.Type())
	requireSameDecoding(t, v.Type().Elem(), got)
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(v.Elem().Interface()))
	got, err = operation.EncodeJSON(v.Interface(), false)
	require.NoError(t, err)
	require.Equal(t, plain.String(), string(got)+"\n", v.Type())
}

// requireSameDecoding also decodes what was not written so: other members, damage.
func requireSameDecoding(t *testing.T, typ reflect.Type, text []byte) {
	t.Helper()
	for _, one := range [][]byte{text, append([]byte(`{"other":1,`), bytes.TrimPrefix(text, []byte("{"))...),
		text[:len(text)/2], bytes.ToUpper(text), append([]byte(" "), text...), append(bytes.Clone(text), '}')} {
		want, got := reflect.New(typ), reflect.New(typ)
		wantErr, err := json.Unmarshal(one, want.Interface()), operation.DecodeJSON(one, got.Interface())
		require.Equal(t, wantErr, err, "%s: %s", typ, one)
		require.Equal(t, want.Interface(), got.Interface(), "%s: %s", typ, one)
	}
}

var (
	texts = []string{"", "lab", "job 7", "a<b>&c", `"\`, "é", "\u2028", "\n", "\xff", "\x7f"}
	times = []time.Time{{}, time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC),
		time.Date(2026, 3, 2, 10, 0, 0, 123456000, time.FixedZone("", 5400)), time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}
	floats = []float64{0, 1, 0.25, 1e21, 1e-7, -3}
)

// fill puts something into every field, or leaves it as it is.
func fill(random *rand.Rand, v reflect.Value, depth int) {
	if !v.CanSet() || random.IntN(4) == 0 || depth > 4 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[random.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(random.Int64N(200) - 100)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(floats[random.IntN(len(floats))])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{ "a":"<1>" }`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), random.IntN(3), 3))
		for i := range v.Len() {
			fill(random, v.Index(i), depth+1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(times[random.IntN(len(times))]))
			return
		}
		for i := range v.NumField() {
			fill(random, v.Field(i), depth+1)
		}
	}
}
