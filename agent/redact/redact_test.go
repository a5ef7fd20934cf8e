package redact_test

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/agent/redact"
)

// r and x are parts of canaries, put together here so that no scanner takes this
// file for a leak.
const (
	r16 = "Zk3vQ9xT7mB2wL5p"
	r24 = r16 + "Hd8Rj4Nc"
	r40 = r24 + "Yf6Gs1UeVa0KiOqX"
	x32 = "9f86d081884c7d659a2feaa0c55ad015"
)

// canaries are lines and the text in them that must not come out.
var canaries = []struct{ name, line, secret string }{
	{"own key", "FOREWARM_KEY is fw_live_a1b2c3d4e5_" + r40 + "Abc_x9Y8z7 ok", r40},
	{"aws id", "using AKIA" + "IOSFODNN7EXAMPLE in eu-west-1", "IOSFODNN7EXAMPLE"},
	{"aws session id", "ASIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"},
	{"aws glued", "keyAKIA" + "IOSFODNN7EXAMPLEx", "IOSFODNN7EXAMPLE"},
	{"aws secret", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"},
	{"aws secret bare", "got wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY", "wJalrXUtnFEMI"},
	{"gcp key", "AIza" + r24 + "abcdefghijk", r24},
	{"gcp token", "ya29." + r24, r24},
	{"gcp secret", "GOCSPX-" + r24, r24},
	{"azure storage", "DefaultEndpointsProtocol=https;AccountName=lab;AccountKey=" + r40 + "==;EndpointSuffix=x", r40},
	{"azure sas", "GET /c?sv=2022&sig=" + r24 + "%3D&se=1", r24},
	{"azure client", "abc8Q~" + r40, r40},
	{"github", "remote: ghp_" + r24 + "Abcdefghijkl", r24},
	{"github server", "ghs_" + r24, r24},
	{"github fine", "github_pat_11ABCDE_" + r40, r40},
	{"gitlab", "glpat-" + r24, r24},
	{"gitlab runner", "glrt-" + r24, r24},
	{"huggingface", "HF login with hf_" + r24 + "abcdefghij", r24},
	{"openai", "sk-" + r40, r40},
	{"openai project", "sk-proj-" + r40, r40},
	{"anthropic", "sk-ant-api03-" + r40, r40},
	{"nvidia", "nvapi-" + r40, r40},
	{"groq", "gsk_" + r24, r24},
	{"replicate", "r8_" + r24, r24},
	{"slack", "xoxb-123456789012-" + r24, r24},
	{"slack hook", "https://hooks.slack.com/services/T000/B000/" + r24, r24},
	{"discord", "https://discord.com/api/webhooks/123/" + r24, r24},
	{"telegram", "123456789:" + r40, r40},
	{"stripe", "sk_live_" + r24, r24},
	{"stripe hook", "whsec_" + r24, r24},
	{"npm", "npm_" + r24 + "abcdefgh", r24},
	{"pypi", "pypi-AgEIcHlwaS5vcmc" + r24, r24},
	{"docker", "dckr_pat_" + r24, r24},
	{"sendgrid", "SG." + r16 + "." + r24, r24},
	{"mailgun", "key-" + x32, x32},
	{"databricks", "dapi" + x32, x32},
	{"digitalocean", "dop_v1_" + x32 + x32, x32},
	{"vault", "hvs." + r24, r24},
	{"wandb", "wandb: " + x32 + "01234567", x32},
	{"jwt", "t eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ." + r24, "eyJzdWIiOiJib2IifQ"},
	{"pem", "-----BEGIN RSA PRIVATE KEY-----\\nMIIEow" + r24 + "\\n-----END", r24},
	{"openssh pem", "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1r", "b3BlbnNzaC1r"},
	{"pem body", "MIIEpAIBAAKCAQEA" + r40, r40},
	{"ssh public", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + r24 + " bob", r24},
	{"age", "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", "QQPZRY9X8GF2"},
	{"url", "postgres://app:hunter22@db/lab", "hunter22"},
	{"url with at", "redis://:pa@ss/w@cache:6379/0", "pa@ss/w"},
	{"url token user", "https://tok3nvalue@git/x.git", "tok3nvalue"},
	{"mysql", "app:hunter22@tcp(db:3306)/lab", "hunter22"},
	{"bearer", "Authorization: Bearer abcdef123", "abcdef123"},
	{"basic", `-H "authorization: Basic Ym9iOmh1bnRlcjI="`, "Ym9iOmh1bnRlcjI"},
	{"bearer alone", "using bearer abcdef123456", "abcdef123456"},
	{"cookie", "Set-Cookie: sid=s3ss10n; Path=/", "s3ss10n"},
	{"password", "password=hunter22", "hunter22"},
	{"password json", `{"db_password": "hunter22 with spaces", "x": 1}`, "with spaces"},
	{"password yaml", "passwd: 'hunter22 two'", "two"},
	{"numeric password", "DB_PASS=12345678", "12345678"},
	{"password flag", "mysql --password hunter22 -h db", "hunter22"},
	{"password prose", "the password is hunter22", "hunter22"},
	{"token", "API_TOKEN=hunter22", "hunter22"},
	{"header", "X-Api-Key: hunter22", "hunter22"},
	{"query", "GET /v1?access_token=hunter22&x=1", "hunter22"},
	{"export", "export WANDB_API_KEY=hunter22", "hunter22"},
	{"php", "'secret' => 'hunter22'", "hunter22"},
	{"passphrase", "passphrase: correct horse battery", "battery"},
	{"email", "mail bob.smith+x@example.co.uk now", "bob.smith"},
	{"ssh prompt", "bob@gpu17:~$ nvidia-smi", "bob"},
	{"ipv4", "from 10.11.12.13:443", "10.11.12.13"},
	{"ipv6", "from fe80::1ff:fe23:4567:890a%eth0", "4567"},
	{"mac", "eth0 52:54:00:ab:cd:ef", "ab:cd"},
	{"home", "open /home/bsmith/run.py", "bsmith"},
	{"mac home", "open /Users/bsmith/run.py", "bsmith"},
	{"windows home", `open C:\Users\bsmith\run.py`, "bsmith"},
	{"user", "user=bsmith gpus=4", "bsmith"},
	{"uid", "uid=1000(bsmith)", "bsmith"},
	{"host name", "connected to trainer7.lab.example.com", "trainer7"},
	{"internal name", "ip-10-0-0-7.ec2.internal up", "10-0-0-7"},
	{"syslog host", "Jan  2 03:04:05 trainer7 slurmd[1]: ok", "trainer7"},
	{"node", "node=trainer7 ok", "trainer7"},
	{"uuid", "GPU-6f1d0a2c-1b2c-3d4e-5f60-718293a4b5c6", "718293a4b5c6"},
	{"long s", "pa\u017f\u017fword=hunter22", "hunter22"},
	{"kelvin", "api_\u212aey=hunter22", "hunter22"},
	{"random", "value " + r40 + " end", r40},
}

func newScrubber(t require.TestingT, c redact.Config) *redact.Redactor {
	r, err := redact.New(c)
	require.NoError(t, err)
	return r
}

func TestNoCanarySurvives(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(canaries), 60)
	r := newScrubber(t, redact.Config{})
	for _, c := range canaries {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, c.line, c.secret, "the canary must be in its line")
			got, count := r.Redact(c.line)
			require.NotContains(t, got.String(), c.secret)
			require.NotEmpty(t, count)
		})
	}
}

// token is the canary that is hidden in other forms, and fragment any part of
// it that is long enough to be a loss.
const token = "ghp_" + r24 + "Abcdefghijkl"

func TestNoHiddenCanarySurvives(t *testing.T) {
	t.Parallel()
	half := token[:15]
	rest := token[15:]
	wide := strings.Map(func(r rune) rune { return r - '!' + 0xff01 }, token)
	each := func(sep string) string { return strings.Join(strings.Split(token, ""), sep) }
	for name, line := range map[string]string{
		"string join":       `x = "` + half + `" + "` + rest + `"`,
		"adjacent strings":  `x = '` + half + `' '` + rest + `'`,
		"shell quotes":      half + `""` + rest,
		"one quote":         half + `'` + rest,
		"backslash":         half + `\` + rest,
		"escaped line end":  half + `\n` + rest,
		"tags":              half + `<b>` + rest + `</b>`,
		"ansi colour":       half + "\x1b[31m" + rest + "\x1b[0m",
		"ansi prefix":       "\x1b[" + token,
		"escape prefix":     "\x1b " + token,
		"written ansi":      half + `\x1b[31m` + rest + `\033[0m`,
		"ansi title":        half + "\x1b]0;title\x07" + rest,
		"ansi 8 bit":        half + "\u009b1m" + rest,
		"carriage control":  half + "\x00\x07\x08" + rest,
		"zero width":        each("\u200b"),
		"soft hyphen":       each("\u00ad"),
		"word joiner":       each("\u2060"),
		"byte order mark":   half + "\ufeff" + rest,
		"combining":         each("\u0301"),
		"variation":         each("\ufe0f"),
		"tag character":     half + "\U000e0041" + rest,
		"hangul filler":     half + "\u3164" + rest,
		"right to left":     half + "\u202e" + rest,
		"thin space":        half + "\u2009" + rest,
		"no-break space":    each("\u00a0"),
		"full width":        wide,
		"bad utf-8":         half + "\xff\xfe" + rest,
		"cyrillic prefix":   "ghр_" + token[4:],
		"url encoded":       strings.ReplaceAll(url.QueryEscape(token), "p_", "%70%5F"),
		"twice url encoded": strings.ReplaceAll(token, "p_", "%2570%255F"),
		"json escapes":      strings.ReplaceAll(token, "p_", `\u0070\u005f`),
		"hex escapes":       strings.ReplaceAll(token, "p_", `\x70\x5f`),
		"octal escapes":     strings.ReplaceAll(token, "p_", `\160\137`),
		"html":              strings.ReplaceAll(token, "p_", "&#112;&#x5f;"),
		"base64":            base64.StdEncoding.EncodeToString([]byte(token)),
		"base64 url":        base64.RawURLEncoding.EncodeToString([]byte("token " + token)),
		"base32":            base32.StdEncoding.EncodeToString([]byte(token)),
		"hex":               hex.EncodeToString([]byte(token)),
		"split base64":      strings.Replace(base64.StdEncoding.EncodeToString([]byte(token)), "Z", "Z\"+\"", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, count := newScrubber(t, redact.Config{}).Redact("step 3 " + line + " done")
			require.NotEmpty(t, count)
			require.NotContains(t, got.String(), rest[:12])
			require.NotContains(t, got.String(), token[4:12])
			for _, coded := range []string{line, base64.StdEncoding.EncodeToString([]byte(token))[8:24]} {
				require.NotContains(t, got.String(), coded)
			}
			require.Contains(t, got.String(), "step 3 ")
		})
	}
}

func TestWhatAForecastNeedsStays(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{})
	for _, line := range []string{
		"epoch 3/90 loss=0.231 lr=1e-4 eta 02:13:44",
		"2026-07-01T09:00:00Z starting sweep 4 of 12 on 8 GPUs",
		"sbatch: Submitted batch job 812344",
		"tokens=4096 max_tokens: 512 tokens/s=18234.5 num_tokens=1.2M",
		"train_resnet50_imagenet_batch256_epoch090 running",
		"GPU 0: NVIDIA A100-SXM4-80GB, 71 C, 312 W",
		"val acc 0.7612 -> 0.7718, saving checkpoint step_120000",
	} {
		got, count := r.Redact(line)
		require.Equal(t, line, got.String(), "%v", count)
	}
}

func TestPatternsAndWordsOfTheCustomer(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{Patterns: []string{`PROJ-\d+`}, Words: []string{"Bluebird"}})
	got, count := r.Redact("run PROJ-17 for BLUEBIRD and blue\u200bbird")
	require.Equal(t, "run [redacted:custom] for [redacted:word] and [redacted:word]", got.String())
	require.Equal(t, redact.Count{"custom": 1, "word": 2}, count)
	// Names in letters that look like others are found as well as those that look like them.
	r = newScrubber(t, redact.Config{Words: []string{"Сергей", "Müller"}})
	got, _ = r.Redact("сергей and MÜLLER wait")
	require.Equal(t, "[redacted:word] and [redacted:word] wait", got.String())
	for _, bad := range []redact.Config{
		{Patterns: []string{"("}}, {Patterns: []string{"x*"}}, {Words: []string{"ab"}}, {MaxLine: -1},
	} {
		_, err := redact.New(bad)
		require.Error(t, err)
	}
}

func TestLongLinesAreCut(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{MaxLine: 100})
	got, _ := r.Redact(strings.Repeat("é ", 5000))
	require.LessOrEqual(t, len(got.String()), 100)
	require.True(t, strings.HasPrefix(got.String(), "é é"))
	got, _ = r.Redact(strings.Repeat("a", 1<<20))
	require.Empty(t, got.String())
	// A secret across the cut must not leave its first half.
	got, _ = r.Redact(strings.Repeat("- ", 395) + token)
	require.NotContains(t, got.String(), "ghp_")
}

func TestOnlyScrubbedTextMarshals(t *testing.T) {
	t.Parallel()
	got, _ := newScrubber(t, redact.Config{}).Redact("password=hunter22 gpus=4")
	b, err := json.Marshal(map[string]any{"line": got})
	require.NoError(t, err)
	require.JSONEq(t, `{"line":"password=[redacted:named-secret] gpus=4"}`, string(b))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", got, got, got), "hunter22")
}

func TestThereAreThirtyKindsOfSecret(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(redact.Names()), 30)
}

// drawSecret returns a secret of a random kind, and the part that must vanish.
func drawSecret(t *rapid.T) (text, secret string) {
	body := rapid.StringOfN(rapid.RuneFrom([]rune("ABCDEFGHJKMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789")), 24, 40,
		-1).Draw(t, "body")
	prefix := rapid.SampledFrom([]string{
		"ghp_", "sk-ant-api03-", "sk-", "hf_", "glpat-", "xoxb-", "sk_live_", "nvapi-", "AIza", "npm_",
		"password=", "token: ", "Authorization: Bearer ", "fw_live_a1b2c3d4e5_",
	}).Draw(t, "prefix")
	return prefix + body, body
}

func TestAPlantedCanaryNeverSurvives(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		text, secret := drawSecret(t)
		before := rapid.StringOfN(rapid.Rune(), 0, 40, -1).Draw(t, "before")
		after := rapid.StringOfN(rapid.Rune(), 0, 40, -1).Draw(t, "after")
		if split := rapid.SampledFrom([]string{"", "\u200b", "\x1b[1m", `"+"`, "\x00", "\u00a0", `\`}).Draw(t,
			"split"); split != "" {
			at := rapid.IntRange(1, len(text)-1).Draw(t, "at")
			text = text[:at] + split + text[at:]
		}
		got, _ := r.Redact(before + " " + text + " " + after)
		require.NotContains(t, got.String(), secret)
		require.NotContains(t, got.String(), secret[len(secret)-12:])
	})
}

// A backslash in a secret makes no character of what comes after it.
func TestASecretIsJoinedBeforeItIsDecoded(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{})
	for _, text := range []string{`ghp_AAAAAAAAAAAA\uAAAAAAAAAAA`, `password=AAAAAAAAAAAA\xABAAAAAAAAAAAA`} {
		got, _ := r.Redact(text)
		require.NotContains(t, got.String(), "AAAAAAAAA")
	}
}

func FuzzRedact(f *testing.F) {
	for _, c := range canaries {
		f.Add(c.line, "")
	}
	f.Add("\x1b]0;", "\x07")
	f.Add(`"`, `"`)
	r := newScrubber(f, redact.Config{})
	f.Fuzz(func(t *testing.T, before, after string) {
		got, _ := r.Redact(before + " " + token + " " + after)
		if strings.Contains(got.String(), token[4:]) {
			t.Fatalf("the canary survived: %q", got)
		}
		if len(got.String()) > 2<<10 {
			t.Fatalf("%d bytes", len(got.String()))
		}
	})
}
