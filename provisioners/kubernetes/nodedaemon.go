//go:build clouds

package kubernetes

import (
	"context"
	"errors"
	"path"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// Daemon is the node's daemon that a placeholder runs, as its user and in its container.
type Daemon struct {
	// Program is the path of forewarm-node in Image. Empty: none is run.
	Program string `yaml:"program"`
	// SharedUser lets the work of holders run as the user of the placeholder, which is the
	// only one that there is in the container. Without it the daemon reports, and takes no
	// sessions.
	SharedUser bool `yaml:"shared_user"`
	// Args are further arguments of forewarm-node run.
	Args []string `yaml:"args"`
}

// mistakes returns what is wrong with it beside a probe.
func (d Daemon) mistakes(probe Probe) error {
	switch {
	case d.Program == "" && (d.SharedUser || len(d.Args) > 0):
		return errors.New("daemon.program: is empty, and shared_user and args go with it")
	case d.Program != "" && !path.IsAbs(d.Program):
		return errors.New("daemon.program: is no absolute path")
	case d.Program != "" && probe != ProbeLogs:
		return errors.New("daemon.program: needs probe: logs, so that both know the same GPUs")
	}
	return nil
}

const (
	daemonVolume = "forewarm-node" // is empty when the pod begins, and goes with it
	daemonFolder = "/var/lib/forewarm-node"

	tokenVariable = "FOREWARM_JOIN_TOKEN"
	tokenKey      = "join-token"
)

// daemonScript keeps the daemon running beside what holds the GPUs, until the control plane
// does not believe it any more. The arguments from the second on are its command.
const daemonScript = `keep_daemon() {
  token=$` + tokenVariable + `
  unset ` + tokenVariable + `
  while :; do
    printf '%s' "$token" | "$@"
    case $? in 0 | 2 | 4) return ;; esac
    sleep 5
  done
}
expires=$1
shift
keep_daemon "$@" &
unset ` + tokenVariable + `
set -- "$expires"
`

// daemonCommand is how the daemon of a machine is started; nil: none is.
func (c Config) daemonCommand(spec provisioners.Spec) []string {
	if c.Daemon.Program == "" || spec.Daemon.URL == "" {
		return nil
	}
	words := []string{c.Daemon.Program, "run", "--url", spec.Daemon.URL, "--node", spec.NodeID, "--token-file", "-",
		"--state-dir", daemonFolder + "/state", "--hold-dir", daemonFolder + "/holds"}
	if c.Daemon.SharedUser {
		words = append(words, "--shared-user")
	}
	return append(words, c.Daemon.Args...)
}

// addDaemon has a placeholder run the daemon. The token is in a Secret of its own: many may
// read a pod, which can wait for its node for minutes.
func addDaemon(pod *corev1.Pod, command []string) {
	hold := &pod.Spec.Containers[0]
	script, expires := hold.Command[2], hold.Command[4]
	hold.Command = append([]string{"sh", "-c", daemonScript + script, "forewarm", expires}, command...)
	hold.Env = append(hold.Env, corev1.EnvVar{Name: tokenVariable, ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{Key: tokenKey,
			LocalObjectReference: corev1.LocalObjectReference{Name: pod.Name}},
	}})
	for i := range hold.Env {
		if hold.Env[i].Name == driverCapabilities { // holders compute
			hold.Env[i].Value = "compute,utility"
		}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: daemonVolume,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	hold.VolumeMounts = append(hold.VolumeMounts,
		corev1.VolumeMount{Name: daemonVolume, MountPath: daemonFolder},
		corev1.VolumeMount{Name: daemonVolume, MountPath: "/tmp", SubPath: "tmp"})
}

// writeToken keeps the join token of a machine where its placeholder alone is given it. The
// cluster collects it with the machine's record.
func (a api) writeToken(ctx context.Context, s *stored, token provisioners.JoinToken) error {
	_, err := a.core.Secrets(s.object.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.object.Namespace, Name: s.object.Name,
			Labels: instanceLabels(s.Spec, rolePlaceholder), OwnerReferences: []metav1.OwnerReference{ownedBy(s)}},
		StringData: map[string]string{tokenKey: token.Reveal()},
	}, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return writeError(err, "writing the join token into namespace %s", s.object.Namespace)
}
