package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"
)

// apiServer is what the API server makes of `ops/kubernetes/encryption.yaml` when it starts.
type apiServer struct {
	t       *testing.T
	secrets value.Transformer
	health  func() error
}

func (p *place) apiServer() *apiServer {
	p.t.Helper()
	text, err := os.ReadFile("../../../../ops/kubernetes/encryption.yaml")
	check(p.t, err)
	// A busy machine takes longer.
	here := strings.NewReplacer("/run/bulla-kms/socket", p.path("plugin"), "timeout: 3s", "timeout: 30s")
	check(p.t, os.WriteFile(p.path("encryption.yaml"), []byte(here.Replace(string(text))), 0o600))
	loaded, err := encryptionconfig.LoadEncryptionConfig(p.t.Context(), p.path("encryption.yaml"), false, "test")
	check(p.t, err)
	health := func() error {
		return loaded.HealthChecks[0].Check(httptest.NewRequest("GET", "/healthz", nil))
	}
	return &apiServer{p.t, loaded.Transformers[schema.GroupResource{Resource: "secrets"}], health}
}

// object is the place of an object in etcd, which its encryption covers.
var object = value.DefaultContext("/registry/secrets/default/password")

func (a *apiServer) write(text string) []byte {
	a.t.Helper()
	stored, err := a.secrets.TransformToStorage(a.t.Context(), []byte(text), object)
	check(a.t, err)
	if !bytes.HasPrefix(stored, []byte("k8s:enc:kms:v2:bulla:")) || bytes.Contains(stored, []byte(text)) {
		a.t.Fatalf("%q was stored", stored)
	}
	return stored
}

// reads reads an object, which the API server should write again if it is stale.
func (a *apiServer) reads(stored []byte, text string, isStale bool) {
	a.t.Helper()
	found, stale, err := a.secrets.TransformFromStorage(a.t.Context(), stored, object)
	check(a.t, err)
	if string(found) != text || stale != isStale {
		a.t.Fatalf("read %q, stale: %v", found, stale)
	}
}

func TestTheAPIServerWritesAndReadsAcrossRotationsAndRestarts(t *testing.T) {
	p := start(t)
	first := p.apiServer()
	check(t, first.health())
	old := first.write("password 1")
	first.reads(old, "password 1", false)

	p.rotate()
	p.kill(p.service)
	p.kill(p.plugin)
	p.serve()
	p.plug()
	second := p.apiServer()
	check(t, second.health())
	second.reads(old, "password 1", true)
	second.reads(second.write("password 2"), "password 2", false)
}

// The API server keeps its keys for as long as the plugin does not work, and asks again.
func TestAnAPIServerThatStartsBeforeTheServiceWaitsForIt(t *testing.T) {
	p := prepare(t)
	p.plug()
	server := p.apiServer()
	if err := server.health(); err == nil || !strings.Contains(err.Error(), "Unavailable") {
		t.Fatal(err)
	}
	p.serve()
	p.eventually("the API server is healthy", func() bool { return server.health() == nil })
	server.reads(server.write("password"), "password", false)
}

func TestStatusNamesTheVersionThatEncrypts(t *testing.T) {
	p := start(t)
	client := p.client()
	for version := 1; version <= 3; version++ {
		found, err := client.Status(t.Context())
		check(t, err)
		made, err := client.Encrypt(t.Context(), "uid", []byte("seed"))
		check(t, err)
		if found.Version != "v2" || found.Healthz != "ok" || !strings.HasSuffix(found.KeyID, fmt.Sprintf("/v%d", version)) {
			t.Fatalf("%+v", found)
		}
		if made.KeyID != found.KeyID || len(made.Annotations) != 0 || len(made.Ciphertext) > 1024 {
			t.Fatalf("%+v", made)
		}
		p.rotate()
	}
}

// Whatever was encrypted, by any version, decrypts afterwards.
func TestNothingIsLostWhileProgramsAreKilledAndTheKeyIsRotated(t *testing.T) {
	p := start(t)
	client := p.client()
	type made struct {
		plaintext string
		*service.EncryptResponse
	}
	var all []made
	var mutex sync.Mutex
	var writers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	count := func() int {
		mutex.Lock()
		defer mutex.Unlock()
		return len(all)
	}
	for writer := range 4 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				plaintext := fmt.Sprintf("seed %d of %d", n, writer)
				// A call fails while a program is down; the API server repeats it.
				answer, err := client.Encrypt(ctx, "uid", []byte(plaintext))
				if err == nil {
					mutex.Lock()
					all = append(all, made{plaintext, answer})
					mutex.Unlock()
				}
			}
		})
	}
	more := func() {
		before := count()
		p.eventually("calls succeed again", func() bool { return count() >= before+20 })
	}
	for round := range 6 {
		more()
		p.rotate()
		more()
		if round%2 == 0 {
			p.kill(p.plugin)
			p.plug()
		} else {
			p.kill(p.service)
			p.serve()
		}
	}
	more()
	stop()
	writers.Wait()
	versions := map[string]int{}
	for _, one := range all {
		versions[one.KeyID]++
		request := &service.DecryptRequest{Ciphertext: one.Ciphertext, KeyID: one.KeyID}
		plaintext, err := client.Decrypt(t.Context(), "uid", request)
		check(t, err)
		if string(plaintext) != one.plaintext {
			t.Fatalf("%q is %q", one.plaintext, plaintext)
		}
	}
	if len(versions) != 7 {
		t.Fatalf("the versions encrypted %v", versions)
	}
	t.Logf("%d ciphertexts of %d versions", len(all), len(versions))
}

func TestASealedServiceIsReportedUntilItIsUnsealed(t *testing.T) {
	p := start(t)
	client := p.client()
	_, err := client.Status(t.Context())
	check(t, err)
	p.ask("operator/seal", "")
	// The plugin has its reason before the API server stops waiting.
	_, err = p.clientThatWaits(3 * time.Second).Status(t.Context())
	isError(t, err, codes.Unavailable, "sealed")
	p.ask("operator/unseal", "{}")
	_, err = client.Status(t.Context())
	check(t, err)
	for _, said := range []string{"the key kubernetes encrypts and decrypts", "the API server cannot use the key kubernetes"} {
		if !strings.Contains(p.output.String(), said) {
			t.Fatalf("%q was not said", said)
		}
	}
}

func TestAKeyThatMayNotBeUsedIsReported(t *testing.T) {
	p := start(t)
	client := p.client()
	strong, err := os.ReadFile(p.path("token"))
	check(t, err)
	p.replaceToken([]byte(p.run("token", "attenuate", "token", "--operation", "encrypt", "--operation", "read")))
	_, err = client.Status(t.Context())
	isError(t, err, codes.PermissionDenied, "does not permit")
	// The plugin reads the file again.
	p.replaceToken(strong)
	_, err = client.Status(t.Context())
	check(t, err)
	p.run("keys", "disable", "kubernetes", "--server", "unix:service")
	_, err = client.Status(t.Context())
	isError(t, err, codes.FailedPrecondition, "is disabled: enable it")
	p.replaceToken([]byte("no token\n"))
	_, err = client.Status(t.Context())
	if err == nil || strings.Contains(p.output.String(), "no token\n") {
		t.Fatal(err)
	}
}

func isError(t *testing.T, err error, code codes.Code, says string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), says) {
		t.Fatalf("%v, and not %v: %s", err, code, says)
	}
}

func TestRequestsThatNoAPIServerSendsAreRefused(t *testing.T) {
	p := start(t)
	client := p.client()
	made, err := client.Encrypt(t.Context(), "uid", []byte("seed"))
	check(t, err)
	good := service.DecryptRequest{Ciphertext: made.Ciphertext, KeyID: made.KeyID}
	changed := bytes.Clone(made.Ciphertext)
	changed[len(changed)-1] ^= 1
	p.rotate()
	for name, change := range map[string]func(*service.DecryptRequest){
		"a changed ciphertext":     func(r *service.DecryptRequest) { r.Ciphertext = changed },
		"no ciphertext":            func(r *service.DecryptRequest) { r.Ciphertext = nil },
		"a long ciphertext":        func(r *service.DecryptRequest) { r.Ciphertext = make([]byte, 1025) },
		"another version":          func(r *service.DecryptRequest) { r.KeyID = strings.TrimSuffix(r.KeyID, "1") + "2" },
		"a version that is none":   func(r *service.DecryptRequest) { r.KeyID += "0" },
		"a key id of other makers": func(r *service.DecryptRequest) { r.KeyID = "projects/1/keys/2" },
		"a path as a key id":       func(r *service.DecryptRequest) { r.KeyID = "../../operator/seal" },
		"annotations":              func(r *service.DecryptRequest) { r.Annotations = map[string][]byte{"a.example.org": nil} },
	} {
		request := good
		change(&request)
		plaintext, err := client.Decrypt(t.Context(), "uid", &request)
		if err == nil {
			t.Errorf("%s decrypted to %q", name, plaintext)
		}
	}
	for _, length := range []int{0, 513, 100_000} {
		_, err := client.Encrypt(t.Context(), "uid", make([]byte, length))
		if err == nil {
			t.Errorf("%d bytes were encrypted", length)
		}
	}
	// What other programs encrypt with the key is not for the API server.
	check(t, os.WriteFile(p.path("value"), []byte("seed"), 0o600))
	p.run("encrypt", "--key", "kubernetes", "--server", "unix:service", "--output", "value.encrypted", "value")
	other, err := os.ReadFile(p.path("value.encrypted"))
	check(t, err)
	found, err := client.Status(t.Context())
	check(t, err)
	_, err = client.Decrypt(t.Context(), "uid", &service.DecryptRequest{Ciphertext: other, KeyID: found.KeyID})
	isError(t, err, codes.InvalidArgument, "")
	// All of this was refused, and the plugin still works.
	plaintext, err := client.Decrypt(t.Context(), "uid", &good)
	check(t, err)
	if string(plaintext) != "seed" {
		t.Fatalf("%q", plaintext)
	}
}

func TestBytesThatAreNoRequestsHarmNobody(t *testing.T) {
	p := start(t)
	raw := func(bytes []byte) {
		connection, err := net.Dial("unix", p.path("plugin"))
		check(t, err)
		defer connection.Close()
		connection.Write(bytes)
	}
	preface := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	raw([]byte("GET / HTTP/1.1\r\n\r\n"))
	raw(preface[:10])
	raw(append(preface, bytes.Repeat([]byte{0xff}, 4096)...))
	connection, err := grpc.NewClient("unix://"+p.path("plugin"), grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(t, err)
	defer connection.Close()
	for path, code := range map[string]codes.Code{
		"/v1beta1.KeyManagementService/Version": codes.Unimplemented,
		"/v2.KeyManagementService/Wrong":        codes.Unimplemented,
		"/":                                     codes.Unimplemented,
	} {
		err := connection.Invoke(t.Context(), path, &kmsapi.StatusRequest{}, &kmsapi.StatusResponse{})
		isError(t, err, code, "")
	}
	// The fields have other types in this message.
	err = connection.Invoke(t.Context(), "/v2.KeyManagementService/Decrypt",
		&kmsapi.StatusResponse{Version: "v2", Healthz: "\x00"}, &kmsapi.DecryptResponse{})
	if err == nil {
		t.Fatal("another message was accepted")
	}
	_, err = p.client().Status(t.Context())
	check(t, err)
}

func TestTheSocketIsForOneProgramOfOneGroup(t *testing.T) {
	p := start(t)
	info, err := os.Lstat(p.path("plugin"))
	check(t, err)
	if info.Mode() != os.ModeSocket|0o660 {
		t.Fatalf("the socket has the mode %v", info.Mode())
	}
	with := func(socket string) []string {
		return []string{"--socket", socket, "--key", "kubernetes", "--server", "unix:service", "--token-file", "token"}
	}
	p.refuses("another plugin listens there", with("plugin")...)
	p.refuses("it is not a socket", with("serve.toml")...)
	p.refuses("create it", with("missing/socket")...)
	check(t, os.Mkdir(p.path("open"), 0o700))
	check(t, os.Chmod(p.path("open"), 0o777))
	p.refuses("other users could replace the socket", with("open/socket")...)
	check(t, p.plugin.Process.Signal(syscall.SIGTERM))
	check(t, p.plugin.Wait())
	if _, err := os.Lstat(p.path("plugin")); !os.IsNotExist(err) {
		t.Fatalf("the socket was left behind: %v", err)
	}
}

func TestAPluginWithoutASafeWayToAServiceDoesNotStart(t *testing.T) {
	p := prepare(t)
	socket := []string{"--socket", "plugin", "--key", "kubernetes"}
	with := func(more ...string) []string { return append(socket[:len(socket):len(socket)], more...) }
	p.refuses("--server or BULLA_ADDR", with()...)
	p.refuses("would travel unencrypted", with("--server", "http://192.0.2.1:8200")...)
	p.refuses("cannot come from standard input", with("--server", "unix:service", "--token-file", "-")...)
	p.refuses("cannot read the token", with("--server", "unix:service", "--token-file", "missing")...)
	if _, err := os.Lstat(p.path("plugin")); !os.IsNotExist(err) {
		t.Fatalf("there is a socket: %v", err)
	}
}
