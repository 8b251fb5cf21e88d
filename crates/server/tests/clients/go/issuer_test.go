package clients

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const redirect = "http://localhost:9999/auth/callback"

// issuerKey is a key of the issuer, for its library.
type issuerKey struct {
	id  string
	key *rsa.PrivateKey
}

func (k issuerKey) ID() string                                  { return k.id }
func (k issuerKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k issuerKey) Key() any                                    { return k.key }

// publicKey is the public half of a key, for its library.
type publicKey struct{ issuerKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.key.PublicKey }

// rotating is the library's storage in memory, with keys that change. The last one signs.
type rotating struct {
	*storage.Storage
	mutex sync.Mutex
	keys  []issuerKey
}

func (r *rotating) rotate(t *testing.T, keep int) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.keys = append(r.keys[len(r.keys)-min(keep, len(r.keys)):], issuerKey{rand.Text(), key})
}

func (r *rotating) SigningKey(context.Context) (op.SigningKey, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.keys[len(r.keys)-1], nil
}

func (r *rotating) KeySet(context.Context) ([]op.Key, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var all []op.Key
	for _, key := range r.keys {
		all = append(all, publicKey{key})
	}
	return all, nil
}

// startIssuer starts a certified OpenID provider: Zitadel's library, with the storage of its
// example.
func startIssuer(t *testing.T) (string, *rotating) {
	t.Helper()
	logs := slog.Default()
	t.Cleanup(func() { slog.SetDefault(logs) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer := fmt.Sprintf("http://localhost:%d", listener.Addr().(*net.TCPAddr).Port)
	clients := map[string]*storage.Client{"bulla": storage.WebClient("bulla", "secret", redirect)}
	keys := &rotating{Storage: storage.NewStorageWithClients(storage.NewUserStore(issuer), clients)}
	keys.rotate(t, 0)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	server := httptest.NewUnstartedServer(
		exampleop.SetupServer(issuer, keys, quiet, false, op.WithAllowInsecure(), op.WithLogger(quiet)))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return issuer, keys
}

// idToken logs a person in, as a browser does, and returns the ID token.
func idToken(t *testing.T, issuer string) string {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	follow := func(answer *http.Response, err error) *url.URL {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		next, err := answer.Location()
		if err != nil {
			said, _ := io.ReadAll(answer.Body)
			t.Fatal(answer.Request.URL.Path, answer.Status, string(said))
		}
		return next
	}
	query := url.Values{
		"client_id": {"bulla"}, "redirect_uri": {redirect}, "response_type": {"code"}, "scope": {"openid"}, "state": {"1"},
	}
	var found struct {
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
	}
	decodeJSON(t, &found)(browser.Get(issuer + "/.well-known/openid-configuration"))
	login := follow(browser.Get(found.Authorize + "?" + query.Encode()))
	form := url.Values{"id": {login.Query().Get("authRequestID")}, "username": {"test-user2"}, "password": {"verysecure"}}
	callback := follow(browser.PostForm(issuer+"/login/username", form))
	code := follow(browser.Get(callback.String())).Query().Get("code")
	form = url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect}}
	request, err := http.NewRequest("POST", found.Token, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth("bulla", "secret")
	var made struct {
		IDToken string `json:"id_token"`
	}
	decodeJSON(t, &made)(browser.Do(request))
	return made.IDToken
}

// decodeJSON reads the answer to a request into a value.
func decodeJSON(t *testing.T, into any) func(*http.Response, error) {
	return func(answer *http.Response, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != 200 {
			t.Fatal(answer.Status, err)
		}
	}
}

// serveFor starts a service whose role "person" is for the issuer, and returns its address.
func serveFor(t *testing.T, issuer string) string {
	t.Helper()
	settings := filepath.Join(t.TempDir(), "serve.toml")
	text := fmt.Sprintf(`
[[listen]]
address = "127.0.0.1:0"
[[issuer]]
name = "zitadel"
issuer = %q
[[role]]
name = "person"
issuer = "zitadel"
audiences = ["bulla"]
subjects = ["id2"]
tenant = "local"
operations = ["read"]
`, issuer)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	service := exec.Command(os.Getenv("BULLA"), "serve", "--dev", "--config", settings)
	said, err := service.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, after, found := strings.Cut(lines.Text(), "listening on "); found {
			go func() {
				for lines.Scan() {
				}
			}()
			return strings.FieldsFunc(after, func(r rune) bool { return r == '"' || r == ' ' || r == '\x1b' })[0]
		}
	}
	t.Fatal("the service does not listen")
	return ""
}

// TestARealIssuer logs in with ID tokens of an OpenID provider, which the service finds by
// discovery, while the provider's keys change.
func TestARealIssuer(t *testing.T) {
	issuer, keys := startIssuer(t)
	address := serveFor(t, issuer)
	login := func(token string) (int, string) {
		t.Helper()
		body, err := json.Marshal(data{"role": "person", "jwt": token})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(address+"/v1/auth/jwt/login", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(said)
	}
	first := idToken(t, issuer)
	if status, said := login(first); status != 200 || !strings.Contains(said, `"holder":"zitadel/id2"`) {
		t.Fatal(status, said)
	}
	// A new key signs, and the one before is still published.
	keys.rotate(t, 1)
	second := idToken(t, issuer)
	for _, token := range []string{first, second} {
		if status, said := login(token); status != 200 {
			t.Fatal(status, said)
		}
	}
	// Both are withdrawn. The service learns it when a JWT names a key that it does not know.
	keys.rotate(t, 0)
	if status, said := login(idToken(t, issuer)); status != 200 {
		t.Fatal(status, said)
	}
	for _, token := range []string{first, second, strings.Replace(second, ".", ".e", 1)} {
		if status, said := login(token); status != 400 {
			t.Fatal(status, said)
		}
	}
}
