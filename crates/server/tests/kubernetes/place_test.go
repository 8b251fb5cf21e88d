// Package kubernetes has the code of Kubernetes' API server encrypt with a key of a running
// service, by `bulla kms-plugin`. BULLA names the program.
package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
	"k8s.io/kms/pkg/service"
)

// place is a keystore with the key `kubernetes`, a service that has it open, and a plugin.
type place struct {
	t               *testing.T
	folder          string
	service, plugin *exec.Cmd
	output          *output
}

// output is what a program prints; it is read while the program runs.
type output struct {
	mutex sync.Mutex
	bytes bytes.Buffer
}

func (o *output) Write(more []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.bytes.Write(more)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.bytes.String()
}

const settings = `
[keystore]
folder = "keystore"
[[listen]]
unix = "service"
[[caller]]
name = "operator"
tenant = "local"
uid = %d
operations = ["create", "read", "rotate", "update", "encrypt", "decrypt"]
`

// prepare makes the keystore and a token, and starts nothing.
func prepare(t *testing.T) *place {
	t.Helper()
	// The path of a socket is short.
	folder, err := os.MkdirTemp("", "kms")
	check(t, err)
	p := &place{t: t, folder: folder, output: &output{}}
	t.Cleanup(func() {
		p.kill(p.plugin)
		p.kill(p.service)
		if t.Failed() {
			t.Log(p.output)
		}
		os.RemoveAll(folder)
	})
	p.run("keystore", "init", "--keystore", "keystore")
	p.run("keys", "create", "kubernetes", "--algorithm", "aes-256-gcm", "--keystore", "keystore")
	p.replaceToken([]byte(p.run("token", "new", "--key", "kubernetes", "--expires", "1h", "--keystore", "keystore",
		"--operation", "encrypt", "--operation", "decrypt", "--operation", "read")))
	check(t, os.WriteFile(p.path("serve.toml"), fmt.Appendf(nil, settings, os.Getuid()), 0o600))
	return p
}

// start makes the keystore, and starts the service and the plugin.
func start(t *testing.T) *place {
	t.Helper()
	p := prepare(t)
	p.serve()
	p.plug()
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.folder, name) }

// replaceToken replaces the plugin's token, as a program does that gets a new one.
func (p *place) replaceToken(token []byte) {
	p.t.Helper()
	check(p.t, os.WriteFile(p.path("token.new"), token, 0o600))
	check(p.t, os.Rename(p.path("token.new"), p.path("token")))
}

func (p *place) command(arguments ...string) *exec.Cmd {
	command := exec.Command(os.Getenv("BULLA"), arguments...)
	command.Dir = p.folder
	return command
}

// run runs a command of bulla, and returns what it prints.
func (p *place) run(arguments ...string) string {
	p.t.Helper()
	var said bytes.Buffer
	command := p.command(arguments...)
	command.Stderr = &said
	stdout, err := command.Output()
	if err != nil {
		p.t.Fatalf("bulla %s: %v\n%s", strings.Join(arguments, " "), err, &said)
	}
	return string(stdout)
}

// refuses runs a plugin that must end with an error that says this.
func (p *place) refuses(says string, arguments ...string) {
	p.t.Helper()
	said, err := p.command(append([]string{"kms-plugin"}, arguments...)...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(said), says) {
		p.t.Fatalf("%v: %s", err, said)
	}
}

// serve starts the service, and waits until it answers.
func (p *place) serve() {
	p.t.Helper()
	p.service = p.command("serve", "--config", "serve.toml")
	p.service.Stdout, p.service.Stderr = p.output, p.output
	check(p.t, p.service.Start())
	p.eventually("the service is ready", func() bool {
		answer, err := p.http().Get("http://service/api/v1/health")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

func (p *place) http() *http.Client {
	dial := func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", p.path("service")) }
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// ask sends a request of an operator, which must succeed.
func (p *place) ask(path, body string) {
	p.t.Helper()
	answer, err := p.http().Post("http://service/api/v1/"+path, "application/json", strings.NewReader(body))
	check(p.t, err)
	defer answer.Body.Close()
	if said, _ := io.ReadAll(answer.Body); answer.StatusCode/100 != 2 {
		p.t.Fatalf("%s: %s: %s", path, answer.Status, said)
	}
}

// plug starts the plugin, and waits until it listens.
func (p *place) plug() {
	p.t.Helper()
	p.plugin = p.command("kms-plugin", "--socket", "plugin", "--key", "kubernetes",
		"--server", "unix:service", "--token-file", "token")
	p.plugin.Stdout, p.plugin.Stderr = p.output, p.output
	check(p.t, p.plugin.Start())
	p.eventually("the plugin listens", func() bool {
		connection, err := net.Dial("unix", p.path("plugin"))
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}

// kill ends a program at once, and leaves its socket behind.
func (p *place) kill(program *exec.Cmd) {
	if program != nil && program.ProcessState == nil {
		program.Process.Kill()
		program.Wait()
	}
}

// client is the API server's own client. A busy machine takes longer than the API server waits.
func (p *place) client() service.Service {
	p.t.Helper()
	return p.clientThatWaits(30 * time.Second)
}

func (p *place) clientThatWaits(timeout time.Duration) service.Service {
	p.t.Helper()
	client, err := kmsv2.NewGRPCService(p.t.Context(), "unix://"+p.path("plugin"), "bulla", timeout)
	check(p.t, err)
	return client
}

func (p *place) rotate() {
	p.t.Helper()
	p.run("keys", "rotate", "kubernetes", "--server", "unix:service")
}

func (p *place) eventually(what string, isSo func() bool) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); !isSo(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatal(what)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
