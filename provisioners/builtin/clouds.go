//go:build clouds

package builtin

// cloudKinds are the kinds whose SDKs are too large for the default build.
var cloudKinds = map[string]Constructor{
	"aws":        newAWS,
	"gcp":        newGCP,
	"kubernetes": newKubernetes,
}
