package kms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A service that gives tokens by their number, each for the lifetime, and notes what it is asked.
type loginService struct {
	lifetime time.Duration
	mu       sync.Mutex
	logins   []string
	tokens   []string
}

func (s *loginService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != loginPath {
		s.tokens = append(s.tokens, r.Header.Get("Authorization"))
		signs(w, r)
		return
	}
	var body map[string]string
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if body["jwt"] == "forged" {
		failing(http.StatusForbidden, "forbidden", false)(w, r)
		return
	}
	s.logins = append(s.logins, body["role"]+" "+body["jwt"])
	w.WriteHeader(http.StatusCreated)
	expires := time.Now().Add(s.lifetime).UTC().Format(time.RFC3339Nano)
	fmt.Fprintf(w, `{"token":"t%d","revocation_id":"r","expires":%q,"holder":"ci/a","operations":["sign"]}`, len(s.logins), expires)
}

func loggingIn(t *testing.T, service *loginService, jwt func(context.Context) (string, error)) *Client {
	t.Helper()
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	client, err := New(server.URL, WithLogin("release", jwt), WithRetries(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAClientLogsInOnceForManyRequests(t *testing.T) {
	service := &loginService{lifetime: time.Hour}
	client := loggingIn(t, service, func(context.Context) (string, error) { return "jwt\n", nil })
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			if _, err := client.Sign(context.Background(), "k", nil); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if fmt.Sprint(service.logins) != "[release jwt]" || len(service.tokens) != 8 {
		t.Fatal(service.logins, service.tokens)
	}
	for _, token := range service.tokens {
		if token != "Bearer t1" {
			t.Error(token)
		}
	}
}

func TestAClientLogsInAgainBeforeItsTokenExpires(t *testing.T) {
	service := &loginService{lifetime: time.Hour}
	number := 0
	client := loggingIn(t, service, func(context.Context) (string, error) {
		number++
		return fmt.Sprint("jwt", number), nil
	})
	sign := func() {
		t.Helper()
		if _, err := client.Sign(context.Background(), "k", nil); err != nil {
			t.Fatal(err)
		}
	}
	sign()
	if left := time.Until(client.logins.renew); left < 44*time.Minute || left > 45*time.Minute {
		t.Fatal(left)
	}
	client.logins.renew = time.Now()
	sign()
	sign()
	if fmt.Sprint(service.logins, service.tokens) != "[release jwt1 release jwt2] [Bearer t1 Bearer t2 Bearer t2]" {
		t.Fatal(service.logins, service.tokens)
	}
}

func TestALoginThatFailsIsTheErrorOfTheRequest(t *testing.T) {
	service := &loginService{lifetime: time.Hour}
	noFile := errors.New("no file")
	answers := []string{"", "forged", "jwt"}
	client := loggingIn(t, service, func(context.Context) (string, error) {
		jwt := answers[0]
		answers = answers[1:]
		if jwt == "" {
			return "", noFile
		}
		return jwt, nil
	})
	ctx := context.Background()
	if _, err := client.Sign(ctx, "k", nil); !errors.Is(err, noFile) {
		t.Fatal(err)
	}
	if _, err := client.Sign(ctx, "k", nil); !errors.Is(err, CodeForbidden) {
		t.Fatal(err)
	}
	if _, err := client.Sign(ctx, "k", nil); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := client.Sign(ended, "k", nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestALoginShowsNoToken(t *testing.T) {
	service := &loginService{lifetime: time.Hour}
	client := loggingIn(t, service, nil)
	login, err := client.LogIn(context.Background(), "release", " jwt ")
	if err != nil {
		t.Fatal(err)
	}
	if login.Token != "t1" || login.Holder != "ci/a" || fmt.Sprint(login.Operations) != "[sign]" || time.Until(login.Expires) <= 0 {
		t.Fatal(login.Token, login)
	}
	for _, text := range []string{fmt.Sprint(login), fmt.Sprint(*login), fmt.Sprintf("%+v %#v", login, *login)} {
		if strings.Contains(text, "t1") || !strings.Contains(text, "ci/a") {
			t.Error(text)
		}
	}
}
