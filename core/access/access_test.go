package access_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/access"
)

func TestWaysIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ shell, command string }{
		"ssh://ubuntu@10.0.0.7:22":     {"ssh -p 22 ubuntu@10.0.0.7", "ssh -p 22 ubuntu@10.0.0.7"},
		"ssh://gpu-3.lab.example":      {"ssh gpu-3.lab.example", "ssh gpu-3.lab.example"},
		"ssh://op@[fe80::1%eth0]:2222": {"ssh -p 2222 op@fe80::1%eth0", "ssh -p 2222 op@fe80::1%eth0"},
		"10.0.0.1":                     {"ssh 10.0.0.1", "ssh 10.0.0.1"},
		"host:2022":                    {"ssh -p 2022 host", "ssh -p 2022 host"},
		"2001:db8::7":                  {"ssh 2001:db8::7", "ssh 2001:db8::7"},
		"slurm://c1?job=42": {"srun --jobid=42 --overlap --nodelist=c1 --pty bash -l",
			"srun --jobid=42 --overlap --nodelist=c1 --nodes=1 --ntasks=1"},
		"slurm://c1": {"", ""},
		"kubernetes://gpus/fw-1?container=hold&node=n-7": {"kubectl exec -it -n gpus fw-1 -c hold -- sh -l",
			"kubectl exec -i -n gpus fw-1 -c hold --"},
		"kubernetes://gpus/fw-1": {"kubectl exec -it -n gpus fw-1 -- sh -l", "kubectl exec -i -n gpus fw-1 --"},
		"local:///":              {"bash -l", "env"},
		"sim://m-1":              {"", ""},
	} {
		a, err := access.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want.shell, access.Quote(a.Shell()), text)
		require.Equal(t, want.command, access.Quote(a.Command()), text)
		require.Equal(t, want.shell != "", a.Enterable(), text)
		again, err := access.Parse(a.String())
		require.NoError(t, err, a.String())
		require.Equal(t, a, again, text)
	}
	require.Empty(t, access.Address{}.String())
	require.Nil(t, access.Address{}.Run(nil, []string{"id"}, true))
}

// hostile are addresses of which a command could make an option, another command or
// another host.
var hostile = []string{
	"", "-oProxyCommand=id", "ssh://-oProxyCommand=id", "ssh://-l@host", "ssh://user@-host", "ssh://a b", "ssh://host;id",
	"ssh://host\nid", "ssh://$(id)", "ssh://`id`", "ssh://'h'", "ssh://h\"", "ssh://host:-1", "ssh://host:0",
	"ssh://host:70000", "ssh://host:+22", "ssh://host:22:22", "ssh://[::1", "ssh://::1]", "ssh://[-1]", "ssh://[::1]22",
	"ssh://u@v@host", "ssh://user@", "ssh://@host", "ssh://host/path", "ssh://h\x00", "ssh://hôte", "ssh://a@[::1%-x]",
	"slurm://c1?job=", "slurm://c1?job=1 --uid=0", "slurm://c1?job=-1", "slurm://c1?job=42&x=1", "slurm://-c1?job=1",
	"slurm://c1,c2?job=1", "slurm://c[1-9]?job=1", "slurm://c1?jobs=1", "slurm://c1?job=99999999999",
	"kubernetes://ns", "kubernetes://ns/", "kubernetes:///pod", "kubernetes://ns/pod/x", "kubernetes://ns/--all",
	"kubernetes://ns/pod?container=-c", "kubernetes://ns/pod?container=a&container=b", "kubernetes://ns/pod?x=y",
	"kubernetes://ns/pod?container=", "local://elsewhere/",
	"local:///etc", "sim://", "sim://a b", "http://host", "://host",
	"ssh://" + strings.Repeat("a", 254), strings.Repeat("ssh://host", 200),
}

func TestHostileAddressesLeadNowhere(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		a, err := access.Parse(text)
		require.Error(t, err, "%q", text)
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, access.Address{}, a, "%q", text)
	}
}

// What an address gives to a command is never an option that the command did not have,
// and reads the same when it is written and read again.
func FuzzParse(f *testing.F) {
	for _, text := range append(hostile, "ssh://u@h:22", "slurm://n?job=7", "kubernetes://a/b?container=c&node=d",
		"local:///", "sim://x", "[::1]:22") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := access.Parse(text)
		if err != nil {
			require.Equal(t, access.Address{}, a)
			return
		}
		again, err := access.Parse(a.String())
		require.NoError(t, err)
		require.Equal(t, a, again)
		for _, part := range []string{a.Host, a.User, a.Job, a.Namespace, a.Pod, a.Container} {
			require.False(t, strings.HasPrefix(part, "-"))
			require.NotContains(t, part, "/")
			require.NotRegexp(t, `[^A-Za-z0-9._:%-]`, part)
		}
		for _, word := range a.Command() {
			require.NotRegexp(t, `[^A-Za-z0-9._:%@=-]`, word)
		}
		require.Equal(t, access.Quote(a.Shell()), strings.Join(a.Shell(), " "), "nothing needs quoting")
	})
}

// What is run with its environment arrives word by word, whatever is in it: checked
// with a real shell, as sshd has one read it.
func TestRunKeepsWords(t *testing.T) {
	t.Parallel()
	words := []string{"printf", "%s|", "a b", "it's", `"$HOME"`, "$(id)", "-n", "", "line\nbreak", "é*?", "`x`"}
	want := strings.Join(words[2:], "|") + "|"
	env := []string{"FIRST=one two", "SECOND='$x'"}
	ssh, err := access.Parse("ssh://host")
	require.NoError(t, err)
	argv := ssh.Run(env, words, false)
	require.Equal(t, []string{"ssh", "host"}, argv[:2])
	require.Len(t, argv, 3)
	out, err := exec.Command("sh", "-c", argv[2]).Output()
	require.NoError(t, err)
	require.Equal(t, want, string(out))

	local, err := access.Parse("local:///")
	require.NoError(t, err)
	argv = local.Run(env, []string{"sh", "-c", `printf %s "$FIRST/$SECOND"`}, false)
	got, err := exec.Command(argv[0], argv[1:]...).Output()
	require.NoError(t, err)
	require.Equal(t, "one two/'$x'", string(got))
}

func TestRunOfEachKind(t *testing.T) {
	t.Parallel()
	env, words := []string{"K=V"}, []string{"hostname", "-f"}
	login := `sh -c 'exec env "$@" "${SHELL:-/bin/sh}" -l' sh K=V`
	for text, want := range map[string]struct{ command, terminal, shell string }{
		"ssh://u@h:7": {"ssh -p 7 u@h 'env K=V hostname -f'", "ssh -t -p 7 u@h 'env K=V hostname -f'",
			"ssh -t -p 7 u@h " + access.SingleQuote(login)},
		"slurm://c1?job=42": {"srun --jobid=42 --overlap --nodelist=c1 --nodes=1 --ntasks=1 env K=V hostname -f",
			"srun --jobid=42 --overlap --nodelist=c1 --nodes=1 --ntasks=1 --pty env K=V hostname -f",
			"srun --jobid=42 --overlap --nodelist=c1 --nodes=1 --ntasks=1 --pty " + login},
		"kubernetes://ns/p": {"kubectl exec -i -n ns p -- env K=V hostname -f",
			"kubectl exec -it -n ns p -- env K=V hostname -f", "kubectl exec -it -n ns p -- " + login},
		"local:///": {"env K=V hostname -f", "env K=V hostname -f", login},
		"sim://m":   {"", "", ""},
	} {
		a, err := access.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want.command, access.Quote(a.Run(env, words, false)), text)
		require.Equal(t, want.terminal, access.Quote(a.Run(env, words, true)), text)
		require.Equal(t, want.shell, access.Quote(a.Run(env, nil, true)), text)
	}
}
