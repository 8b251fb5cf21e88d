// Package test checks the manifest for Kubernetes against the types of its API, and its parts
// against each other.
package test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// A manifest has one object of each of these kinds.
type manifest struct {
	settings   core.ConfigMap
	deployment apps.Deployment
	service    core.Service
	budget     policy.PodDisruptionBudget
}

// read reads the manifest. A field that the API does not have, a value of a wrong type and a
// repeated field are errors.
func read(t *testing.T) manifest {
	t.Helper()
	text, err := os.ReadFile("../bulla.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	into := map[meta.TypeMeta]any{
		{APIVersion: "v1", Kind: "ConfigMap"}:                  &m.settings,
		{APIVersion: "apps/v1", Kind: "Deployment"}:            &m.deployment,
		{APIVersion: "v1", Kind: "Service"}:                    &m.service,
		{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}: &m.budget,
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		object, ok := into[kind]
		if !ok {
			t.Fatalf("%v is unknown, or there are two", kind)
		}
		delete(into, kind)
		if err := yaml.UnmarshalStrict(document, object, yaml.DisallowUnknownFields); err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
	}
	if len(into) > 0 {
		t.Fatalf("the manifest lacks %v", into)
	}
	return m
}

func TestTheManifestHasTheTypesOfTheAPI(t *testing.T) {
	m := read(t)
	for _, name := range []string{m.settings.Name, m.deployment.Name, m.service.Name, m.budget.Name} {
		if name != "bulla" {
			t.Errorf("an object has the name %q", name)
		}
	}
}

func TestSelectorsFindThePods(t *testing.T) {
	m := read(t)
	pods := labels.Set(m.deployment.Spec.Template.Labels)
	selectors := []*meta.LabelSelector{m.deployment.Spec.Selector, m.budget.Spec.Selector}
	for _, constraint := range m.deployment.Spec.Template.Spec.TopologySpreadConstraints {
		selectors = append(selectors, constraint.LabelSelector)
	}
	for _, selector := range append(selectors, &meta.LabelSelector{MatchLabels: m.service.Spec.Selector}) {
		found, err := meta.LabelSelectorAsSelector(selector)
		if err != nil || found.Empty() || !found.Matches(pods) {
			t.Errorf("%v does not select the pods: %v", selector, err)
		}
	}
	if replicas := *m.deployment.Spec.Replicas; m.budget.Spec.MinAvailable.IntVal >= replicas {
		t.Errorf("%d pods, of which none may be away", replicas)
	}
}

func TestPortsAndVolumesAreThere(t *testing.T) {
	m := read(t)
	pod := m.deployment.Spec.Template.Spec
	container := pod.Containers[0]
	hasPort := func(name string) bool {
		return slices.ContainsFunc(container.Ports, func(port core.ContainerPort) bool { return port.Name == name })
	}
	for _, port := range m.service.Spec.Ports {
		if !hasPort(port.TargetPort.StrVal) {
			t.Errorf("no container has the port %v", port.TargetPort)
		}
	}
	for _, probe := range []*core.Probe{container.ReadinessProbe, container.LivenessProbe} {
		if !hasPort(probe.HTTPGet.Port.StrVal) || probe.HTTPGet.Scheme != core.URISchemeHTTPS {
			t.Errorf("a probe asks %v", probe.HTTPGet)
		}
	}
	volumes := map[string]core.Volume{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = volume
	}
	for _, mount := range container.VolumeMounts {
		if _, ok := volumes[mount.Name]; !ok {
			t.Errorf("there is no volume %q", mount.Name)
		}
		delete(volumes, mount.Name)
	}
	if len(volumes) > 0 {
		t.Errorf("nothing mounts %v", volumes)
	}
}

// The runbook has the paths in the settings from the mounts.
func TestTheSettingsNameFilesOnMountedVolumes(t *testing.T) {
	m := read(t)
	container := m.deployment.Spec.Template.Spec.Containers[0]
	settings := m.settings.Data["serve.toml"]
	isMounted := func(path string) bool {
		return slices.ContainsFunc(container.VolumeMounts, func(mount core.VolumeMount) bool {
			return strings.HasPrefix(path, mount.MountPath+"/") || path == mount.MountPath
		})
	}
	paths := 0
	for _, text := range strings.Split(settings, `"`) {
		if strings.HasPrefix(text, "/") {
			paths++
			if !isMounted(text) {
				t.Errorf("nothing mounts %s", text)
			}
		}
	}
	if paths != 6 {
		t.Errorf("the settings name %d paths", paths)
	}
	for _, variable := range container.Env {
		if !isMounted(variable.Value) {
			t.Errorf("nothing mounts %s", variable.Value)
		}
	}
	if at := container.Args[2]; !isMounted(at) || !strings.HasSuffix(at, "/serve.toml") {
		t.Errorf("the service reads %s", at)
	}
}

func TestAPodHasTimeToStop(t *testing.T) {
	m := read(t)
	pod := m.deployment.Spec.Template.Spec
	pause := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds
	if !strings.Contains(m.settings.Data["serve.toml"], "\nshutdown_timeout_seconds = 30\n") {
		t.Fatal("the service stops within another time")
	}
	if *pod.TerminationGracePeriodSeconds < pause+30 {
		t.Errorf("%d seconds are too few for a pause of %d and a stop of 30", *pod.TerminationGracePeriodSeconds, pause)
	}
}

func TestAPodHasNoPrivileges(t *testing.T) {
	pod := read(t).deployment.Spec.Template.Spec
	security := pod.Containers[0].SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || *pod.AutomountServiceAccountToken || *security.AllowPrivilegeEscalation ||
		!*security.ReadOnlyRootFilesystem || !slices.Equal(security.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("%v, %v", pod.SecurityContext, security)
	}
}
