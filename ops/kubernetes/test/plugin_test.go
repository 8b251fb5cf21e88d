package test

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// readPlugin reads the static pod of the plugin, as strictly as the manifest.
func readPlugin(t *testing.T) core.Pod {
	t.Helper()
	text, err := os.ReadFile("../kms-plugin.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pod core.Pod
	if err := yaml.UnmarshalStrict(text, &pod, yaml.DisallowUnknownFields); err != nil {
		t.Fatal(err)
	}
	if pod.APIVersion != "v1" || pod.Kind != "Pod" {
		t.Fatalf("%s %s is no pod", pod.APIVersion, pod.Kind)
	}
	return pod
}

func TestThePluginHasItsFilesOnTheMachine(t *testing.T) {
	pod := readPlugin(t)
	container := pod.Spec.Containers[0]
	isMounted := func(file string) bool {
		return slices.ContainsFunc(container.VolumeMounts, func(mount core.VolumeMount) bool {
			return path.Dir(file) == mount.MountPath
		})
	}
	for _, mount := range container.VolumeMounts {
		volume := slices.IndexFunc(pod.Spec.Volumes, func(volume core.Volume) bool { return volume.Name == mount.Name })
		// The API server and the operator find the files under the same paths.
		if volume < 0 || pod.Spec.Volumes[volume].HostPath.Path != mount.MountPath {
			t.Errorf("%s is mounted from elsewhere", mount.MountPath)
		}
	}
	if container.Args[0] != "kms-plugin" || container.Args[1] != "--socket" || !isMounted(container.Args[2]) {
		t.Errorf("the plugin has the arguments %v", container.Args)
	}
	for _, variable := range container.Env {
		if strings.HasPrefix(variable.Value, "/") && !isMounted(variable.Value) {
			t.Errorf("nothing mounts %s", variable.Value)
		}
	}
	configuration, err := os.ReadFile("../encryption.yaml")
	if err != nil || !strings.Contains(string(configuration), `"unix://`+container.Args[2]+`"`) {
		t.Errorf("the API server asks another socket: %v", err)
	}
}

// The kubelet starts it without an API server, so it can have nothing that one gives.
func TestThePluginNeedsNoAPIServerAndNoPrivileges(t *testing.T) {
	spec := readPlugin(t).Spec
	container := spec.Containers[0]
	security := container.SecurityContext
	if *spec.AutomountServiceAccountToken || !spec.HostNetwork || len(container.EnvFrom) > 0 {
		t.Errorf("%v", spec)
	}
	for _, volume := range spec.Volumes {
		if volume.HostPath == nil {
			t.Errorf("the volume %s is not on the machine", volume.Name)
		}
	}
	if !*spec.SecurityContext.RunAsNonRoot || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem ||
		!slices.Equal(security.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("%v, %v", spec.SecurityContext, security)
	}
}
