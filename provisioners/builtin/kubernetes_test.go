//go:build clouds

package builtin_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/builtin"
)

// The use of a Kubernetes cluster decides what is made of it.
func TestUsesOfKubernetes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(`
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: test, context: {cluster: test}}]
current-context: test
`), 0o600))
	for use, observes := range map[string]bool{"": false, "use: reserved,": false, "use: observed,": true} {
		made, err := builtin.New("kubernetes", strictDecoder("{"+use+" kubeconfig: "+path+
			", offers: [{type: a100-8, model: a100, gpus: 8}]}"), testDeps(t.TempDir()))
		require.NoError(t, err)
		_, is := made.(provisioners.Observer)
		require.Equal(t, observes, is, use)
		offers, err := made.Offers(t.Context())
		require.NoError(t, err)
		require.Equal(t, observes, offers[0].Observed, use)
	}
}
