package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server/problem"
)

// walkJSON is checkJSON as the standard library's decoder sees it, token by token.
func walkJSON(data []byte) *problem.Problem {
	if !utf8.Valid(data) {
		return malformedProblem("", "is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	w := walker{dec: dec}
	if p := w.checkValue("", 0); p != nil {
		return p
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return malformedProblem("", "has something after its JSON value")
	}
	return nil
}

type walker struct {
	dec      *json.Decoder
	textOnly bool
}

// checkValue reads one value at the place.
func (w walker) checkValue(place string, depth int) *problem.Problem {
	if depth > httpx.MaxDepth {
		return malformedProblem(place, fmt.Sprintf("nests deeper than %d levels", httpx.MaxDepth))
	}
	token, err := w.dec.Token()
	if err != nil {
		return malformedProblem(place,
			fmt.Sprintf("is not valid JSON (at byte %d); numbers must be finite, and NaN is none",
				w.dec.InputOffset()))
	}
	switch t := token.(type) {
	case string:
		return checkPlainText(place, t)
	case json.Number:
		if f, err := strconv.ParseFloat(t.String(), 64); !w.textOnly && (err != nil || math.IsInf(f, 0)) {
			return malformedProblem(place, "is a number beyond all bounds")
		}
	case json.Delim:
		return w.checkComposite(t, place, depth)
	}
	return nil
}

func (w walker) checkComposite(open json.Delim, place string, depth int) *problem.Problem {
	seen, last := map[string]bool{}, place
	for i := 0; w.dec.More(); i++ {
		at := place + "/" + strconv.Itoa(i)
		if open == '{' {
			token, err := w.dec.Token()
			name, ok := token.(string)
			if err != nil || !ok { // what is wrong is between the value before and here
				return malformedProblem(last, fmt.Sprintf("is not valid JSON (at byte %d)", w.dec.InputOffset()))
			}
			if at = place + "/" + name; seen[name] && !w.textOnly {
				return malformedProblem(at, "comes twice")
			}
			seen[name] = true
			if p := checkPlainText(place, name); p != nil {
				return p
			}
		}
		if p := w.checkValue(at, depth+1); p != nil {
			return p
		}
		last = at
	}
	if _, err := w.dec.Token(); err != nil {
		return malformedProblem(place, fmt.Sprintf("is not valid JSON (at byte %d)", w.dec.InputOffset()))
	}
	return nil
}

// walkBatch is checkBatch in the same way.
func walkBatch(data []byte) *problem.Problem {
	if !utf8.Valid(data) {
		return malformedProblem("", "is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	one := isOneValue(data)
	for i := 0; i == 0 || !one && dec.More(); i++ {
		place := "/" + strconv.Itoa(i)
		if one {
			place = ""
		}
		w := walker{dec: dec, textOnly: true}
		if p := w.checkValue(place, 0); p != nil {
			if p.Code == contract.CodeMalformedJSON && !strings.Contains(p.Detail, "nests deeper") {
				return nil
			}
			return p
		}
	}
	return nil
}

// halfOfPair finds escapes of surrogates that the decoder takes for U+FFFD: it cannot tell where they were.
var halfOfPair = regexp.MustCompile(`(?i)\\u(d[89ab]..(\\ud[c-f]..)?|d[c-f]..)`)

func hasHalfOfPair(data []byte) bool {
	text := strings.ReplaceAll(string(data), `\\`, "  ") // behind one that is escaped there is no escape
	return slices.ContainsFunc(halfOfPair.FindAllString(text, -1), func(s string) bool { return len(s) < 12 })
}

// requireSameFindings fails unless both ways find the same, to the last letter.
func requireSameFindings(t require.TestingT, data []byte) {
	if hasHalfOfPair(data) {
		require.True(t, !json.Valid(data) || checkJSON(data) != nil, "%q", data)
		return
	}
	require.Equal(t, walkJSON(data), checkJSON(data), "%q", data)
	if want := walkBatch(data); !isPlainASCII(data) {
		require.Equal(t, want, checkBatch(data), "as a batch: %q", data)
	}
}

// isPlainASCII reports what checkBatch does not look at.
func isPlainASCII(data []byte) bool {
	return !bytes.ContainsFunc(data, func(r rune) bool { return r == '\\' || r >= 0x7f })
}

// pieces are what broken JSON is made of, besides right JSON.
var pieces = []string{"{", "}", "[", "]", ":", ",", `"`, `"a"`, `"b"`, `"\u0061"`, `""`, "1", "-", "01", "-0", "1.",
	"1.5", ".5", "1e", "1e5", "1E+400", "-1e-400", "1e999", "+1", "true", "tru", "truex", "false", "null", "nul", "NaN",
	"Infinity", " ", "\n", "\t", "\r", "\v", "\x00", `\`, `"\ud83d\ude00"`, `"\ud800"`, `"\u00"`, `"\x41"`,
	`"\u202e"`, "\"\u202e\"", "\"\u200b\":1", "\x7f", "\"\x7f\"", "é", `"é"`,
	"\xff", "\"\x01\"", `"\n"`, `"\/"`,
	"\ufeff", `{"a":1,"a":2}`, `{"a":{"b":[1,{"c":null}]}}`, strings.Repeat("[", 31), strings.Repeat(`{"a":`, 31),
	strings.Repeat("9", 310), strings.Repeat("]", 33), "0." + strings.Repeat("3", 400)}

// value draws right JSON, with blanks here and there, and at times a name twice.
func value(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		blank := rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t \r"}).Draw(t, "blank")
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if depth == 0 {
			kind = kind % 4
		}
		switch kind {
		case 0:
			text, _ := json.Marshal(rapid.String().Draw(t, "text"))
			return blank + string(text) + blank
		case 1:
			return blank + strconv.FormatFloat(rapid.Float64().Draw(t, "number"), 'g', -1, 64) + blank
		case 2:
			return rapid.SampledFrom([]string{"true", "false", "null", "0", "-1"}).Draw(t, "word") + blank
		case 3:
			return `"` + rapid.StringMatching(`[a-z ]{0,8}`).Draw(t, "plain") + `"` + blank
		case 4:
			return blank + "[" + strings.Join(rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "items"), blank+",") + "]"
		}
		var members []string
		for range rapid.IntRange(0, 20).Draw(t, "members") {
			name, _ := json.Marshal(rapid.StringMatching(`[a-e]{1,3}|\\|é`).Draw(t, "name"))
			members = append(members, blank+string(name)+blank+":"+value(depth/2).Draw(t, "member"))
		}
		return "{" + strings.Join(members, ",") + blank + "}"
	})
}

// TestTheFormIsCheckedAsByTheDecoder: on right JSON, on such with a part taken out or
// put in, and on heaps of pieces, both find the same.
func TestTheFormIsCheckedAsByTheDecoder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := value(3).Draw(t, "value")
		requireSameFindings(t, []byte(text))
		for range 4 {
			from := rapid.IntRange(0, len(text)).Draw(t, "from")
			to := rapid.IntRange(from, min(len(text), from+3)).Draw(t, "to")
			text = text[:from] + rapid.SampledFrom(pieces).Draw(t, "piece") + text[to:]
			requireSameFindings(t, []byte(text))
		}
		requireSameFindings(t, []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "heap"), "")))
	})
}

func FuzzForm(f *testing.F) {
	for _, piece := range pieces {
		f.Add([]byte(piece))
		f.Add([]byte(`{"a":[` + piece + `,1],"b":` + piece + `}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) { requireSameFindings(t, data) })
}

// An object of very many names is read in a time that grows with their number.
func TestManyNames(t *testing.T) {
	t.Parallel()
	var members []string
	for i := range 20_000 {
		members = append(members, fmt.Sprintf("%q:%d", strconv.Itoa(i), i))
	}
	require.Nil(t, checkJSON([]byte("{"+strings.Join(members, ",")+"}")))
	p := checkJSON([]byte("{" + strings.Join(append(members, `"7":7`), ",") + "}"))
	require.Equal(t, "/7 comes twice", p.Detail)
}

func TestARightBodyCostsNoMemory(t *testing.T) {
	body := []byte(`{"pool":"lab","gpus":1,"start":"2026-03-02T10:00:00Z","needs":{"cuda":[1,2.5,true]},"name":""}`)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if checkJSON(body) != nil {
			t.Fail()
		}
	}))
}

// Half of a surrogate pair would be stored as U+FFFD, which nobody sent.
func TestHalfOfASurrogatePairIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`\ud800x`, `x\uDFFF`, `\ud800\ud800`, `\udc00\ud800`, `\ud83d\n`, `\ud83d\u0041`, `\ud83d`,
	} {
		for _, body := range []string{`{"name":"` + text + `"}`, `{"a":["` + text + `"]}`} {
			p := checkJSON([]byte(body))
			require.NotNil(t, p, body)
			require.Equal(t, contract.CodeMalformedJSON, p.Code)
			require.Contains(t, p.Detail, "half of a surrogate pair")
			require.NotEmpty(t, p.Errors[0].Pointer)
			require.NotNil(t, checkBatch([]byte("["+body+"]")), body)
		}
		require.NotNil(t, checkJSON([]byte(`{"`+text+`":1}`)), text)
	}
	for _, text := range []string{`\ud83d\ude00`, `\uD83D\uDE00x`, "\ufffd", `\ufffd`, `\\ud800`} {
		require.Nil(t, checkJSON([]byte(`{"name":"`+text+`"}`)), text)
		require.Nil(t, checkBatch([]byte(`[{"name":"`+text+`"}]`)), text)
	}
}
