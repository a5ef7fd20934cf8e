//go:build clouds

package kubernetes

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// driverCapabilities is what of the driver the container toolkit brings along.
const driverCapabilities = "NVIDIA_DRIVER_CAPABILITIES"

const (
	graceSeconds = 5
	nobody       = 65534
)

// newPlaceholder is the pod that holds the node of a record.
func (c Config) newPlaceholder(s *stored, offer Offer, expires time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.object.Namespace, Name: s.object.Name,
			Labels:      instanceLabels(s.Spec, rolePlaceholder),
			Annotations: c.placeholderAnnotations(s, offer, expires),
			// A placeholder whose record is gone is collected by the cluster, also
			// when nobody is there to do it.
			OwnerReferences: []metav1.OwnerReference{ownedBy(s)},
		},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{c.newHoldContainer(offer)},
			Volumes:                       []corev1.Volume{timeMount()},
			PriorityClassName:             c.PriorityClass,
			NodeSelector:                  offer.NodeSelector,
			Affinity:                      offer.nodeAffinity(),
			Tolerations:                   offer.podTolerations(),
			RuntimeClassName:              optionalName(offer.RuntimeClass),
			ImagePullSecrets:              c.pullSecrets(),
			RestartPolicy:                 corev1.RestartPolicyOnFailure, // a reboot is no end, exit 0 is
			TerminationGracePeriodSeconds: pointerTo[int64](graceSeconds),
			AutomountServiceAccountToken:  pointerTo(false),
			EnableServiceLinks:            pointerTo(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: pointerTo(true), RunAsUser: pointerTo[int64](nobody),
				RunAsGroup:     pointerTo[int64](nobody),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
}

func (c Config) placeholderAnnotations(s *stored, offer Offer, expires time.Time) map[string]string {
	notes := map[string]string{
		noteToken: s.Token,
		// The autoscalers keep the node while the placeholder is there.
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
		"karpenter.sh/do-not-disrupt":                    "true",
	}
	if !expires.IsZero() {
		notes[noteExpires] = formatExpiry(expires)
	}
	if offer.ProvisioningRequest != "" {
		notes["autoscaling.x-k8s.io/consume-provisioning-request"] = s.object.Name
		notes["autoscaling.x-k8s.io/provisioning-class-name"] = offer.ProvisioningRequest
	}
	return notes
}

// formatExpiry renders a time in whole seconds, the next one where it is between two:
// a machine may not end before its time.
func formatExpiry(t time.Time) string {
	return strconv.FormatInt(t.Add(time.Second-time.Nanosecond).Unix(), 10)
}

func ownedBy(s *stored) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: s.object.Name, UID: s.object.UID}
}

func (c Config) newHoldContainer(offer Offer) corev1.Container {
	amounts := corev1.ResourceList{}
	for name, amount := range offer.Requests {
		amounts[corev1.ResourceName(name)] = resource.MustParse(amount) // Validate has read it
	}
	gpus := *resource.NewQuantity(int64(offer.GPUs), resource.DecimalSI)
	amounts[corev1.ResourceName(offer.Resource)] = gpus
	container := corev1.Container{
		Name: holdContainer, Image: c.Image, Command: c.holdCommand(),
		Resources: corev1.ResourceRequirements{
			Requests: amounts,
			Limits:   corev1.ResourceList{corev1.ResourceName(offer.Resource): gpus},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: timeVolume, MountPath: timeFolder, ReadOnly: true}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: pointerTo(false), ReadOnlyRootFilesystem: pointerTo(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if c.Probe == ProbeLogs { // the container toolkit then brings nvidia-smi along
		container.Env = []corev1.EnvVar{{Name: driverCapabilities, Value: "utility"}}
	}
	return container
}

// timeMount is the annotation as a file, which the kubelet keeps up to date.
func timeMount() corev1.Volume {
	return corev1.Volume{Name: timeVolume,
		VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{{
				Path: timeFile,
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
					FieldPath: "metadata.annotations['" + noteExpires + "']"},
			}},
		}}}
}

func (c Config) pullSecrets() []corev1.LocalObjectReference {
	var secrets []corev1.LocalObjectReference
	for _, name := range c.ImagePullSecrets {
		secrets = append(secrets, corev1.LocalObjectReference{Name: name})
	}
	return secrets
}

func (o Offer) nodeAffinity() *corev1.Affinity {
	if len(o.NodeAffinity) == 0 {
		return nil
	}
	var term corev1.NodeSelectorTerm
	for _, match := range o.NodeAffinity {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: match.Key, Operator: corev1.NodeSelectorOperator(match.Operator), Values: match.Values,
		})
	}
	required := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
	return &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required},
	}
}

// podTolerations are the offer's, and that of the GPUs' own taint, which clouds put
// on every node that has some.
func (o Offer) podTolerations() []corev1.Toleration {
	all := []corev1.Toleration{{Key: o.Resource, Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffectNoSchedule}}
	for _, t := range o.Tolerations {
		all = append(all, corev1.Toleration{
			Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value,
			Effect: corev1.TaintEffect(t.Effect),
		})
	}
	return all
}

func pointerTo[T any](value T) *T { return &value }

func optionalName(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}
