package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/agent/redact"
)

// TestValuesInSentences cuts what a sentence says a secret is, wherever in it that stands.
func TestValuesInSentences(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{})
	for line, secrets := range map[string]string{
		"my password today is fluffybunny":                        "fluffybunny",
		"the password currently is bluewhale5, thanks":            "bluewhale5",
		"das Passwort heute ist blauwal6":                         "blauwal6",
		"passphrase today is bluewhale8":                          "bluewhale8",
		"the new password on db is now bluewhale3":                "bluewhale3",
		"password was changed to bluewhale2":                      "bluewhale2",
		"password was successfully changed to bluewhale2 again":   "bluewhale2",
		"The password has been reset, as of today to bluewhale":   "",
		"password for the big cluster in Zurich is bluewhale":     "bluewhale",
		"the root password is still, as ever, bluewhale":          "bluewhale",
		"password is for now bluewhale":                           "bluewhale",
		"the password of all the nodes on the rack = bluewhale":   "bluewhale",
		"password now bluewhale":                                  "bluewhale",
		"passphrase is correct horse battery staple":              "correct horse battery staple",
		"password was 'bluewhale' and now it is redwhale":         "bluewhale redwhale",
		"password is on the server in the rack bluewhale":         "bluewhale",
		"hasło na dziś bluewhale":                                 "bluewhale",
		"today's password is bluewhale":                           "bluewhale",
		"Das Kennwort lautet bluewhale":                           "bluewhale",
		"Das Passwort wurde auf bluewhale geändert":               "bluewhale",
		"Das Passwort wurde geändert auf bluewhale":               "bluewhale",
		"das Passwort für die Datenbank lautet jetzt bluewhale":   "bluewhale",
		"le mot de passe du serveur est maintenant bluewhale":     "bluewhale",
		"le mot de passe a été changé en bluewhale":               "bluewhale",
		"la contraseña de hoy es bluewhale":                       "bluewhale",
		"la contraseña ahora es bluewhale":                        "bluewhale",
		"la password di oggi è bluewhale":                         "bluewhale",
		"a senha de hoje é bluewhale":                             "bluewhale",
		"het wachtwoord van vandaag is bluewhale":                 "bluewhale",
		"hasło na dziś to bluewhale":                              "bluewhale",
		"пароль сегодня bluewhale":                                "bluewhale",
		"密码今天是bluewhale":                                          "bluewhale",
		"今日のパスワードは今は bluewhale です":                                "bluewhale",
		"bluewhale is the new password":                           "bluewhale",
		"bluewhale ist das Passwort":                              "bluewhale",
		"we changed the password yesterday, it's now bluewhale":   "bluewhale",
		"the password - bluewhale - works":                        "bluewhale",
		"password → bluewhale":                                    "bluewhale",
		"New passphrase (valid from today): bluewhale":            "bluewhale",
		"the wifi password here is, I think, bluewhale":           "bluewhale",
		"password: today it is bluewhale":                         "bluewhale",
		"the password used to be bluewhale but now it's redwhale": "bluewhale redwhale",
		"please use bluewhale as the password":                    "bluewhale",
		"use bluewhale as password for the run":                   "bluewhale",
		"the api token for staging is now bluewhale55":            "bluewhale55",
	} {
		got, _ := r.Redact(line)
		for _, secret := range strings.Fields(secrets) {
			require.NotContains(t, got.String(), secret, line)
		}
	}
}

// TestSentencesWithoutValuesStay keeps log lines about secrets that tell none.
func TestSentencesWithoutValuesStay(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{})
	for _, line := range []string{
		"password authentication failed for user",
		"the password is incorrect", "password was changed", "password is required for login",
		"Das Passwort wurde geändert", "the password was not set", "what is the password", "this is the password prompt",
		"the token count is 4096", "tokens per second is 18234 today", "password reset required for the whole cluster",
		"Bob forgot the password. The sweep on 8 GPUs is next",
		"password authentication failed: connection timeout",
		"the password must be changed by all", "password expired today",
	} {
		got, _ := r.Redact(line)
		require.Equal(t, line, got.String())
	}
}

// TestAPlantedValueInASentenceNeverSurvives makes sentences of a name, what may stand between, and a value.
func TestAPlantedValueInASentenceNeverSurvives(t *testing.T) {
	t.Parallel()
	r := newScrubber(t, redact.Config{})
	names := rapid.SampledFrom([]string{"password", "The passphrase", "my new password", "das Passwort", "mot de passe",
		"contraseña", "senha", "wachtwoord"})
	between := rapid.SampledFrom([]string{"", "today", "currently", "on db", "for the cluster in Bern", "heute", "hoy",
		"of the new machine", "for now", "des Servers"})
	verbs := rapid.SampledFrom([]string{"is", "was", "is now", "was changed to", "has been set to", "=", ":", "ist",
		"lautet jetzt", "est", "es", "é", "will be"})
	after := rapid.SampledFrom([]string{"", "today", ", as agreed", "for now", "and the run starts at 9"})
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`(blue|red)(whale|finch)[a-z0-9]{2,6}`).Draw(t, "value")
		words := []string{names.Draw(t, "name"), between.Draw(t, "between"), verbs.Draw(t, "verb"), value,
			after.Draw(t, "after")}
		got, _ := r.Redact(strings.Join(words, " "))
		require.NotContains(t, got.String(), value)
	})
}
