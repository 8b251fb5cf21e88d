// Package witness has litewitness, a witness of the Go ecosystem, cosign the audit logs of bulla,
// and checks with Go's own libraries what bulla makes of that. BULLA names the program.
package witness

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// place is a keystore with an audit log, and a witness.
type place struct {
	t       *testing.T
	folder  string
	witness *torchwood.CosignatureVerifier
	port    string
	log     note.Verifier
}

func start(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, folder: t.TempDir()}
	p.startWitness()
	p.settings("")
	p.write("file", "a message")
	p.run(0, "keystore", "init")
	p.run(0, "log", "init")
	key := strings.TrimSpace(p.run(0, "log", "witness", "--print-key"))
	verifier, err := note.NewVerifier(key)
	if err != nil {
		t.Fatalf("%q: %v", key, err)
	}
	p.log = verifier
	return p
}

// startWitness runs litewitness with a key in an agent of this process.
func (p *place) startWitness() {
	p.t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	check(p.t, err)
	const name = "witness.example.org"
	signer, err := torchwood.NewCosignatureSigner(name, key)
	check(p.t, err)
	p.witness = signer.Verifier()
	keys := agent.NewKeyring()
	check(p.t, keys.Add(agent.AddedKey{PrivateKey: key}))
	// The path of a socket is short.
	short, err := os.MkdirTemp("", "agent")
	check(p.t, err)
	p.t.Cleanup(func() { os.RemoveAll(short) })
	socket := filepath.Join(short, "socket")
	listener, err := net.Listen("unix", socket)
	check(p.t, err)
	p.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(keys, connection)
		}
	}()
	public, err := ssh.NewPublicKey(key.Public())
	check(p.t, err)
	program := filepath.Join(p.folder, "litewitness")
	build := exec.Command("go", "build", "-o", program, "filippo.io/torchwood/cmd/litewitness")
	if said, err := build.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, said)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check(p.t, err)
	_, p.port, _ = net.SplitHostPort(free.Addr().String())
	free.Close()
	witness := exec.Command(program, "-name", name, "-db", p.path("witness.db"), "-ssh-agent", socket,
		"-key", ssh.FingerprintSHA256(public), "-listen", "127.0.0.1:"+p.port)
	var said bytes.Buffer
	witness.Stderr = &said
	check(p.t, witness.Start())
	p.t.Cleanup(func() {
		witness.Process.Kill()
		witness.Wait()
		if p.t.Failed() {
			p.t.Log(said.String())
		}
	})
	p.eventually("the witness listens", func() bool {
		connection, err := net.Dial("tcp", "127.0.0.1:"+p.port)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}

// trust has the witness know the log and its key.
func (p *place) trust() {
	p.t.Helper()
	db, err := sqlite.OpenConn(p.path("witness.db"), sqlite.OpenReadWrite)
	check(p.t, err)
	defer db.Close()
	empty := sha256.Sum256(nil)
	key := strings.TrimSpace(p.run(0, "log", "witness", "--print-key"))
	for _, insert := range [][]any{
		{"INSERT INTO log (origin, tree_size, tree_hash) VALUES (?, 0, ?)", p.log.Name(), base64.StdEncoding.EncodeToString(empty[:])},
		{"INSERT INTO key (origin, key) VALUES (?, ?)", p.log.Name(), key},
	} {
		check(p.t, sqlitex.Execute(db, insert[0].(string), &sqlitex.ExecOptions{Args: insert[1:]}))
	}
}

func (p *place) path(name string) string { return filepath.Join(p.folder, name) }

func (p *place) write(name, text string) {
	p.t.Helper()
	check(p.t, os.WriteFile(p.path(name), []byte(text), 0o600))
}

func (p *place) settings(more string) {
	p.t.Helper()
	p.write("serve.toml", fmt.Sprintf("%s\n[[witness]]\nurl = \"http://127.0.0.1:%s\"\nkey = %q\n", more, p.port, p.witness.String()))
}

// run runs a command of bulla, which must end with this status, and returns what it prints.
func (p *place) run(status int, arguments ...string) string {
	p.t.Helper()
	stdout, _ := p.runAt("keystore", status, arguments...)
	return stdout
}

func (p *place) runAt(keystore string, status int, arguments ...string) (string, string) {
	p.t.Helper()
	command := exec.Command(os.Getenv("BULLA"), arguments...)
	command.Dir = p.folder
	command.Env = append(os.Environ(), "BULLA_KEYSTORE="+p.path(keystore))
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	if found := command.ProcessState.ExitCode(); found != status {
		p.t.Fatalf("bulla %s: status %d, wanted %d\n%s\n%s", strings.Join(arguments, " "), found, status, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// sign adds entries to the log.
func (p *place) sign(keystore string, times int) {
	p.t.Helper()
	for range times {
		p.runAt(keystore, 0, "sign", "file")
	}
}

// cosign has the witness cosign the log.
func (p *place) cosign() string {
	p.t.Helper()
	return p.run(0, "log", "witness", "--config", "serve.toml")
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

// lines are the entries of the log in a folder.
func (p *place) lines() [][]byte {
	p.t.Helper()
	text, err := os.ReadFile(p.path("keystore/audit-log/00000000000000000000.jsonl"))
	check(p.t, err)
	var entries [][]byte
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(`{"n":`)) {
			entries = append(entries, bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	return entries
}

// root is the root of the tree of these entries, as Go's library computes it.
func root(t *testing.T, entries [][]byte) tlog.Hash {
	t.Helper()
	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var found []tlog.Hash
		for _, index := range indexes {
			found = append(found, hashes[index])
		}
		return found, nil
	})
	for n, entry := range entries {
		more, err := tlog.StoredHashes(int64(n), entry, reader)
		check(t, err)
		hashes = append(hashes, more...)
	}
	hash, err := tlog.TreeHash(int64(len(entries)), reader)
	check(t, err)
	return hash
}

// open checks a cosigned checkpoint with Go's libraries, and returns its size.
func (p *place) open(text string) int64 {
	p.t.Helper()
	opened, err := note.Open([]byte(text), note.VerifierList(p.log, p.witness))
	check(p.t, err)
	if len(opened.Sigs) != 2 || len(opened.UnverifiedSigs) != 0 {
		p.t.Fatalf("%d signatures verify, %d do not: %s", len(opened.Sigs), len(opened.UnverifiedSigs), text)
	}
	checkpoint, err := torchwood.ParseCheckpoint(opened.Text)
	check(p.t, err)
	if checkpoint.Origin != p.log.Name() || checkpoint.Extension != "" {
		p.t.Fatalf("%q", opened.Text)
	}
	if found := root(p.t, p.lines()[:checkpoint.N]); found != checkpoint.Hash {
		p.t.Fatalf("the root of %d entries is %v, and the checkpoint has %v", checkpoint.N, found, checkpoint.Hash)
	}
	return checkpoint.N
}

func TestAWitnessCosignsALogThatGrows(t *testing.T) {
	p := start(t)
	p.trust()
	for round := range 6 {
		p.sign("keystore", round)
		if size := p.open(p.cosign()); size != int64(len(p.lines())) {
			t.Fatalf("%d of %d entries", size, len(p.lines()))
		}
	}
	said := p.run(0, "log", "verify", "--config", "serve.toml")
	if !strings.Contains(said, "cosigned by witness.example.org at 20") {
		t.Fatal(said)
	}
	// A copy of the checkpoint without the witness' signature is not enough.
	path := "keystore/audit-log/cosigned"
	text, err := os.ReadFile(p.path(path))
	check(t, err)
	at := bytes.LastIndex(text, []byte("— "))
	p.write(path, string(text[:at]))
	p.run(0, "log", "verify")
	if said := p.run(1, "log", "verify", "--config", "serve.toml"); !strings.Contains(said, "0 of 1 required witnesses") {
		t.Fatal(said)
	}
	check(t, os.Remove(p.path(path)))
	p.run(1, "log", "verify", "--config", "serve.toml")
}

func TestAServiceHasItsLogCosigned(t *testing.T) {
	p := start(t)
	p.trust()
	socket, err := os.MkdirTemp("", "bulla")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(socket) })
	socket = filepath.Join(socket, "socket")
	p.settings(fmt.Sprintf("[audit]\nwitness_interval_seconds = 1\n[[listen]]\nunix = %q\n"+
		"[[caller]]\nname = \"tester\"\ntenant = \"local\"\nuid = %d\n", socket, os.Getuid()))
	service := exec.Command(os.Getenv("BULLA"), "serve", "--config", p.path("serve.toml"), "--keystore", p.path("keystore"))
	var said bytes.Buffer
	service.Stderr = &said
	check(t, service.Start())
	defer func() {
		service.Process.Kill()
		service.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	}()
	p.eventually("the service listens", func() bool { _, err := os.Stat(socket); return err == nil })
	// The service proves the growth from what it remembers of the witness.
	for range 3 {
		entries := len(p.lines())
		sign := exec.Command(os.Getenv("BULLA"), "sign", "--server", "unix:"+socket, p.path("file"))
		if said, err := sign.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		p.eventually("the witness cosigns", func() bool {
			text, err := os.ReadFile(p.path("keystore/audit-log/cosigned"))
			return err == nil && p.open(string(text)) > int64(entries)
		})
	}
	if strings.Contains(said.String(), "was not cosigned") {
		t.Fatal(said.String())
	}
}

func TestAWitnessRefusesALogThatWasCutOrForked(t *testing.T) {
	p := start(t)
	p.trust()
	p.sign("keystore", 2)
	// The copy keeps the modes of the key file and its folder.
	check(t, exec.Command("cp", "-a", p.path("keystore"), p.path("older")).Run())
	p.sign("keystore", 3)
	p.open(p.cosign())
	// The copy has fewer entries than the witness has seen.
	_, complaint := p.runAt("older", 1, "log", "witness", "--config", "serve.toml")
	if !strings.Contains(complaint, "has seen 6 entries of the log, which has 3") {
		t.Fatal(complaint)
	}
	// With as many and more entries, it has others.
	p.sign("older", 5)
	_, complaint = p.runAt("older", 1, "log", "witness", "--config", "serve.toml")
	if !strings.Contains(complaint, "has seen other entries") {
		t.Fatal(complaint)
	}
	p.open(p.cosign())
}

func TestAWitnessThatKnowsNeitherLogNorKeyIsReported(t *testing.T) {
	p := start(t)
	_, complaint := p.runAt("keystore", 2, "log", "witness", "--config", "serve.toml")
	if !strings.Contains(complaint, "does not know the log") {
		t.Fatal(complaint)
	}
	p.trust()
	p.open(p.cosign())
	p.run(0, "keys", "rotate", "audit-log")
	_, complaint = p.runAt("keystore", 2, "log", "witness", "--config", "serve.toml")
	if !strings.Contains(complaint, "does not trust the log's key") {
		t.Fatal(complaint)
	}
}
