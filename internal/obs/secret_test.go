package obs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/internal/obs"
)

const plain = "hunter2"

// hidden holds a Secret where fmt cannot call its methods.
type hidden struct {
	secret obs.Secret
	list   []obs.Secret
	byName map[string]obs.Secret
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	s := obs.NewSecret(plain)
	h := hidden{s, []obs.Secret{s}, map[string]obs.Secret{"key": s}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%t", "%p", "%T", "%w"} {
		for _, value := range []any{s, &s, []obs.Secret{s}, map[string]obs.Secret{"key": s}, h, &h,
			fmt.Errorf("at: %v", s)} {
			printed := fmt.Sprintf(verb, value)
			require.NotContains(t, printed, plain, "verb %s of %T", verb, value)
			require.NotContains(t, printed, fmt.Sprintf("%x", plain), "verb %s of %T", verb, value)
		}
	}
	require.Equal(t, "***", fmt.Sprint(s))
	require.Equal(t, "***", s.String())
	require.Equal(t, "***", s.GoString())
	require.Equal(t, "***", obs.Secret{}.String(), "an empty secret looks like any other")
}

func TestSecretNeverEncodes(t *testing.T) {
	t.Parallel()
	type config struct{ Password obs.Secret }
	c := config{obs.NewSecret(plain)}

	asJSON, err := json.Marshal(map[string]any{"value": c, "pointer": &c})
	require.NoError(t, err)
	require.NotContains(t, string(asJSON), plain)
	require.Contains(t, string(asJSON), `{"Password":"***"}`)

	asKey, err := json.Marshal(map[obs.Secret]int{c.Password: 1})
	require.NoError(t, err)
	require.JSONEq(t, `{"***":1}`, string(asKey))

	asYAML, err := yaml.Marshal(c)
	require.NoError(t, err)
	require.NotContains(t, string(asYAML), plain)
}

func TestSecretNeverLogs(t *testing.T) {
	t.Parallel()
	for _, format := range []obs.Format{obs.Text, obs.JSON} {
		var out bytes.Buffer
		s := obs.NewSecret(plain)
		log := obs.NewLogger(&out, obs.Config{Format: format})
		log.Info("connecting", "secret", s, "pointer", &s, "struct", struct{ S obs.Secret }{s},
			"hidden", hidden{secret: s}, slog.Group("group", "secret", s))
		require.NotContains(t, out.String(), plain)
		require.Contains(t, out.String(), "***")
	}
}

func TestSecretIsReadFromConfiguration(t *testing.T) {
	t.Parallel()
	type config struct {
		Password obs.Secret `json:"password" yaml:"password"`
	}
	for name, read := range map[string]func(*config) error{
		"json": func(c *config) error { return json.Unmarshal([]byte(`{"password":"hunter2"}`), c) },
		"yaml": func(c *config) error { return yaml.Unmarshal([]byte("password: hunter2"), c) },
	} {
		var c config
		require.NoError(t, read(&c), name)
		require.Equal(t, plain, c.Password.Reveal(), name)
	}
}

func TestSecretCompares(t *testing.T) {
	t.Parallel()
	require.True(t, obs.NewSecret(plain).Equal(obs.NewSecret(plain)))
	require.False(t, obs.NewSecret(plain).Equal(obs.NewSecret(plain+"x")))
	require.True(t, obs.Secret{}.Equal(obs.NewSecret("")))
	require.True(t, obs.Secret{}.IsZero())
	require.True(t, obs.NewSecret("").IsZero())
	require.False(t, obs.NewSecret(plain).IsZero())
}

func TestScrubURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"redis://user:hunter2@host:6379/0":              "redis://host:6379/0",
		"postgres://u:hunter2@host/db?sslmode=disable":  "postgres://host/db",
		"https://host/path?token=hunter2#hunter2":       "https://host/path",
		"https://host/a%2Fb":                            "https://host/a%2Fb",
		"sqlite:///var/lib/forewarm.db?_pragma=x":       "sqlite:///var/lib/forewarm.db",
		"redis://user:hunter2/x@host:6379/0":            "***",
		"redis://user:12#hunter2@host:6379/0":           "***",
		"redis://user:12?hunter2@host:6379/0":           "***",
		"redis://user:12/hunter2@host:6379/0":           "***",
		"redis://a:1@2/hunter2@host":                    "***",
		"redis://user:hunter2%zz@host/0":                "***",
		"host=localhost user=u password=hunter2 dbname": "***",
		"u:hunter2@host":                                "***",
		"redis:hunter2":                                 "redis:***",
		"hunter2":                                       "***",
		"":                                              "***",
		"https://[::1]:8080/v1/pools?cursor=hunter2":    "https://[::1]:8080/v1/pools",
	} {
		got := obs.ScrubURL(raw)
		require.Equal(t, want, got, raw)
		require.NotContains(t, got, plain)
	}
}
