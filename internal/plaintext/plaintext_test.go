package plaintext_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/plaintext"
)

func TestWhatPlainTextDoesNotHave(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "Zoë's 訓練 🚀": "", "מודל": "", "e\u0301": "", "\ufffd": "",
		"a\x00b": `a\x00b`, "\x1b[2J": `\x1b[2J`, "two\nlines": `two\x0alines`, "\x7f": `\x7f`, "\u009b2J": `\u009b2J`,
		"user\u202egnp.exe": `user\u202egnp.exe`, "\u2066x\u2069": `\u2066x\u2069`, "\u200f\u061c": `\u200f\u061c`,
		"a\u200bb": `a\u200bb`, "\u3164": `\u3164`, "\uffa0": `\uffa0`, "\u115f": `\u115f`, "\u200d": `\u200d`,
		"\ufe0f": `\ufe0f`, "\u2800": `\u2800`,
		"\u00ad": `\u00ad`, "\ufeff": `\ufeff`, "\U000e0041": `\U000e0041`, "\u034f": `\u034f`,
		"\u2028": `\u2028`, "\xff\xfe": `\xff\xfe`,
	} {
		if want == "" {
			require.Empty(t, plaintext.Find(text), "%q", text)
			want = text
		} else {
			require.Contains(t, want, plaintext.Find(text), "%q", text)
			require.NotEmpty(t, plaintext.Find(text), "%q", text)
		}
		require.Equal(t, want, plaintext.Escape(text))
	}
	require.Equal(t, "one\n\ttwo\\x0d\\u202e", plaintext.EscapeLines("one\n\ttwo\r\u202e"))
}

func TestEscapedTextIsPlain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		require.Empty(t, plaintext.Find(plaintext.Escape(text)))
	})
}
