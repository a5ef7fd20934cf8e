package keys_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
)

// alphabet is written out again, so that a slip in the package shows.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// example has a checksum that was worked out outside of this program: the CRC-32
// of what is before it is 0x493e0345, which is 1L9vEL in base62.
const example = "fw_live_0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ_1L9vEL"

func mintKey(t require.TestingT, env string) keys.Key {
	k, err := keys.Mint(env, rand.Reader)
	require.NoError(t, err)
	return k
}

func TestMintedKeysParse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		env := rapid.StringMatching(`[a-z][a-z0-9]{0,15}`).Draw(t, "env")
		seed := [32]byte{}
		copy(seed[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed"))
		want, err := keys.Mint(env, mathrand.NewChaCha8(seed))
		require.NoError(t, err)
		got, err := keys.Parse(want.Text.Reveal())
		require.NoError(t, err)
		require.Equal(t, env, got.Env)
		require.Equal(t, want.ID, got.ID)
		require.Equal(t, want.Last4, got.Last4)
		require.True(t, want.Secret.Equal(got.Secret))
		require.True(t, want.Text.Equal(got.Text))
		require.True(t, strings.HasSuffix(want.Text.Reveal(), want.Last4))
		require.Len(t, want.ID, 10)
		require.Len(t, want.Secret.Reveal(), 43)
		require.Len(t, want.Last4, 4)
	})
}

func TestAKnownKeyParses(t *testing.T) {
	t.Parallel()
	k, err := keys.Parse(example)
	require.NoError(t, err)
	require.Equal(t, "live", k.Env)
	require.Equal(t, "0123456789", k.ID)
	require.Equal(t, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ", k.Secret.Reveal())
}

func TestThePatternFindsKeysInText(t *testing.T) {
	t.Parallel()
	k := mintKey(t, "live")
	found := regexp.MustCompile(keys.Pattern).FindString("export KEY=" + k.Text.Reveal() + "\n# next line")
	require.Equal(t, k.Text.Reveal(), found)
}

// Every single wrong character and every swap of neighbours is found: a CRC-32
// finds all bursts of up to 32 bits.
func TestTypingErrorsAreFound(t *testing.T) {
	t.Parallel()
	text := mintKey(t, "live").Text.Reveal()
	secretAt := len("fw_live_")
	for i := secretAt; i < len(text); i++ {
		if text[i] == '_' {
			continue
		}
		for _, wrong := range alphabet {
			if byte(wrong) == text[i] {
				continue
			}
			_, err := keys.Parse(text[:i] + string(wrong) + text[i+1:])
			require.ErrorIs(t, err, keys.ErrChecksum)
		}
		if next := i + 1; next < len(text) && text[next] != '_' && text[next] != text[i] {
			_, err := keys.Parse(text[:i] + text[next:next+1] + text[i:i+1] + text[next+1:])
			require.ErrorIs(t, err, keys.ErrChecksum)
		}
	}
	_, err := keys.Parse(strings.Replace(text, "_live_", "_test_", 1))
	require.ErrorIs(t, err, keys.ErrChecksum, "a key of one environment is none of another")
}

func TestWhatIsNotAKey(t *testing.T) {
	t.Parallel()
	text := mintKey(t, "live").Text.Reveal()
	for _, bad := range []string{
		"", "fw", "fw_live", "Bearer " + text, text + "\n", "\n" + text, " " + text, text + "x", text[1:],
		text[:len(text)-1],
		strings.ToUpper(text), strings.Replace(text, "fw_", "fv_", 1), strings.Replace(text, "_", "-", 1),
		strings.Replace(text, "live", "", 1), strings.Replace(text, "live", "LIVE", 1),
		strings.Replace(text, "live", "l_ve", 1),
		strings.Replace(text, "live", strings.Repeat("a", 17), 1), text[:20] + "é" + text[22:],
		strings.Repeat(text, 1000),
		text[:20] + "\x00" + text[21:],
	} {
		_, err := keys.Parse(bad)
		require.ErrorIs(t, err, keys.ErrMalformed, "%q", bad)
	}
}

func TestMintRefuses(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"", "Live", "1live", "a_b", "a b", strings.Repeat("a", 17), "é"} {
		_, err := keys.Mint(env, rand.Reader)
		require.ErrorContains(t, err, "environment", env)
	}
	_, err := keys.Mint("live", strings.NewReader("too short"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	broken := errors.New("no entropy")
	_, err = keys.Mint("live", io.MultiReader(bytes.NewReader(make([]byte, 64)), failing{broken}))
	require.ErrorIs(t, err, broken)
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// A byte modulo 62 would make the first eight characters a quarter more likely.
func TestEveryCharacterIsEquallyLikely(t *testing.T) {
	t.Parallel()
	random, count, total := mathrand.NewChaCha8([32]byte{1}), map[rune]int{}, 0
	for range 4000 {
		k, err := keys.Mint("live", random)
		require.NoError(t, err)
		for _, c := range k.Secret.Reveal() {
			count[c]++
			total++
		}
	}
	for _, c := range alphabet {
		require.InEpsilon(t, float64(total)/62, count[c], 0.1, "character %c", c)
	}
}

func TestAPrintedKeyShowsNoSecret(t *testing.T) {
	t.Parallel()
	k := mintKey(t, "live")
	printed := fmt.Sprintf("%v %+v %#v %s", k, k, &k, k)
	require.NotContains(t, printed, k.Secret.Reveal())
	require.Contains(t, printed, k.ID)
}

func TestPepperHashesAndVerifies(t *testing.T) {
	t.Parallel()
	raw := bytes.Repeat([]byte{0xfb, 0xff, 0x01, 0x5a}, 8)
	secret := obs.NewSecret("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ")
	var hashes []string
	for name, text := range map[string]string{
		"hexadecimal":     hex.EncodeToString(raw),
		"base64":          base64.StdEncoding.EncodeToString(raw),
		"base64 URL":      base64.URLEncoding.EncodeToString(raw),
		"base64 unpadded": base64.RawStdEncoding.EncodeToString(raw),
	} {
		p, err := keys.ParsePepper("3:" + text + "\n")
		require.NoError(t, err, name)
		require.Equal(t, 3, p.Version())
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", p, p, &p), string(raw))
		hashes = append(hashes, p.Hash(secret))
		require.True(t, p.Verify(secret, hashes[0]), name)
	}
	require.Regexp(t, `^3:[0-9a-f]{64}$`, hashes[0])
	for _, h := range hashes {
		require.Equal(t, hashes[0], h, "one key in four spellings")
	}
}

// Test case 2 of RFC 4231 has a key of 4 bytes, so this is test case 6: a key of
// 131 bytes of 0xaa.
func TestPepperIsHMACSHA256(t *testing.T) {
	t.Parallel()
	p, err := keys.ParsePepper("1:" + strings.Repeat("aa", 131))
	require.NoError(t, err)
	require.Equal(t, "1:60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
		p.Hash(obs.NewSecret("Test Using Larger Than Block-Size Key - Hash Key First")))
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	pepper := func(text string) keys.Pepper {
		p, err := keys.ParsePepper(text)
		require.NoError(t, err)
		return p
	}
	one, two := pepper("1:"+strings.Repeat("11", 32)), pepper("2:"+strings.Repeat("11", 32))
	other := pepper("1:" + strings.Repeat("22", 32))
	secret := mintKey(t, "live").Secret
	stored := one.Hash(secret)
	require.True(t, one.Verify(secret, stored))
	require.False(t, one.Verify(mintKey(t, "live").Secret, stored), "another secret")
	require.False(t, two.Verify(secret, stored), "another version")
	require.False(t, other.Verify(secret, stored), "another pepper")
	for _, bad := range []string{"", stored[2:], stored[:len(stored)-1], stored + "0",
		strings.ToUpper(stored[:10]) + stored[11:]} {
		require.False(t, one.Verify(secret, bad), "%q", bad)
	}
	require.False(t, keys.Pepper{}.Verify(secret, keys.Pepper{}.Hash(secret)), "no pepper verifies nothing")
}

func TestPepperRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("5a", 32)
	for _, bad := range []string{
		"", long, "0:" + long, "-1:" + long, "x:" + long, "1", "1:", "1:" + long[2:],
		"1:hunter2-hunter2-hunter2-hunter2-hunter2-hunter2!", "1:" + long[:63] + "!",
	} {
		_, err := keys.ParsePepper(bad)
		require.Error(t, err, "%q", bad)
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), "5a5a")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("")
	f.Add("fw_live_0123456789_")
	f.Add(strings.Repeat("_", 83))
	pattern := regexp.MustCompile(`^` + keys.Pattern + `$`)
	f.Fuzz(func(t *testing.T, text string) {
		k, err := keys.Parse(text)
		switch {
		case err == nil:
			again := fmt.Sprintf("fw_%s_%s_%s_%s", k.Env, k.ID, k.Secret.Reveal(), text[len(text)-6:])
			require.Equal(t, text, again)
			require.Equal(t, text, k.Text.Reveal())
			require.Regexp(t, pattern, text)
		case errors.Is(err, keys.ErrChecksum):
			require.Regexp(t, pattern, text)
		default:
			require.ErrorIs(t, err, keys.ErrMalformed)
			require.NotRegexp(t, pattern, text)
		}
	})
}
