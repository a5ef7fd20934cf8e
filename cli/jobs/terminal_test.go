package jobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func filtered(pieces ...string) string {
	var f terminalFilter
	var out strings.Builder
	for _, piece := range pieces {
		out.Write(f.Filter([]byte(piece)))
	}
	return out.String()
}

func TestWhatATerminalIsGiven(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext, äöü 漢字 🎉\r\n":                           "plain\ttext, äöü 漢字 🎉\r\n",
		"\x1b[1;38:2:255:0:0mred\x1b[0m\x1b[m":                "\x1b[1;38:2:255:0:0mred\x1b[0m\x1b[m",
		"10%\r\x1b[K20%\b\b":                                  "10%\r\x1b[K20%\b\b",
		"\x1b]0;title\x07a":                                   "a",
		"\x1b]52;c;cm0gLXJm\x1b\\b":                           "b",
		"\x1bPq#0;2\x1b\\c":                                   "c",
		"\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x07d":            "d",
		"\x1b[2J\x1b[H\x1b[5A\x1b[?25l\x1b[6ne":               "e",
		"\x1b[>4;2mf\x1b[!pf\x1b[1 qf":                        "fff",
		"\x1bcg\x1b7g\x1b(0g\x1b#8g":                          "gggg",
		"\a\x00\x7f\x0b\x0ch":                                 "h",
		"\u009b2Ji\u0085\u009d0;x":                            "2Ji0;x",
		"\x9b2J\x84j\xc3\x28":                                 "2Jj\xc3(",
		"\x1b]0;no end\nk":                                    "\nk",
		"\x1b]0;twice\x1b]0;more\x07l":                        "l",
		"\x1b[31\x1b[32mm\x1b[":                               "\x1b[32mm",
		"\x1b\x1b[1mn":                                        "\x1b[1mn",
		"a\u202eb\u202ac\u2066d\u2069e\u200ef\u200fg\u061ch":  "abcdefgh",
		"\u2029\u202f\u2065\u206a\u200b\u061b\u0634\u05dd–…⁈": "\u2029\u202f\u2065\u206a\u200b\u061b\u0634\u05dd–…⁈",
		"\xe2\x80o\xe2p\xd8\u202eq\xe2\x80\xe2\x80\xae":       "opq",
	} {
		require.Equal(t, want, filtered(text), "%q", text)
	}
}

// What has no end hides little of what follows it.
func TestASequenceWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\x1b[" + strings.Repeat("1;", 99) + "end",
		"\x1b]" + strings.Repeat("x", 5000) + "end"} {
		got := filtered(text)
		require.True(t, strings.HasSuffix(got, "end"), got)
		require.NotContains(t, got, "\x1b")
	}
}

// However output is cut into pieces, the same goes to the terminal, and no escape but the harmless ones.
func TestPiecesChangeNothing(t *testing.T) {
	t.Parallel()
	parts := []string{
		"\x1b", "[", "]", "P", "0;", "31", "m", "K", "?", "J", "\x07", "\\", "\n", "x", "ä", "\u009b", "\x9b",
		"\xc2", "漢", "\r", " ", "(", "c", "\u202e", "\u061c", "\xe2", "\x80", "\x81", "\xae", "\xa6", "\xd8", "\x9c", "–",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 30).Draw(t, "text"), "")
		whole := filtered(text)
		require.Equal(t, whole, filtered(strings.Split(text, "")...))
		at := rapid.IntRange(0, len(text)).Draw(t, "cut")
		require.Equal(t, whole, filtered(text[:at], text[at:]))
		require.Equal(t, whole, filtered(whole), "what was let through is let through")
		for i, part := range strings.Split(whole, "\x1b") {
			if i > 0 {
				require.Regexp(t, `^\[[0-9:;]*[mK]`, part)
			}
		}
		require.NotRegexp(t, "[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\u0080-\u009f]", whole)
		require.NotRegexp(t, "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", whole)
	})
}
