package kms

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// answering is a client of a server that answers with the handlers in turn, and with the last one
// ever after.
func answering(t *testing.T, handlers ...http.HandlerFunc) (*Client, *atomic.Int32) {
	t.Helper()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := int(requests.Add(1)) - 1
		handlers[min(number, len(handlers)-1)](w, r)
	}))
	t.Cleanup(server.Close)
	client, err := New(server.URL+"/", WithToken(" token\n"), WithRetries(3, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	return client, &requests
}

func failing(status int, code string, retryable bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "r-1")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"code":%q,"message":"no","retryable":%t}`, code, retryable)
	}
}

// proxy answers as a server that is not the service.
func proxy(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, "<html>")
	}
}

// asksToWait answers that the service is busy for so many seconds.
func asksToWait(seconds string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", seconds)
		failing(503, "busy", true)(w, r)
	}
}

func cut(http.ResponseWriter, *http.Request) {
	panic(http.ErrAbortHandler)
}

func signs(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `{"key":"local/files/ed25519/x/v2","version":2,"signature":"AQI="}`)
}

func created(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `{"key":"local/files/ed25519/x"}`)
}

func TestAChangeHasAKeyByWhichItsRepetitionIsRecognized(t *testing.T) {
	keys := make(chan string, 10)
	note := func(then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			keys <- r.Header.Get("Idempotency-Key")
			then(w, r)
		}
	}
	client, _ := answering(t, note(cut), note(created), note(created), note(signs))
	ctx := context.Background()
	for range 2 {
		if _, err := client.CreateKey(ctx, NewKey{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Sign(ctx, "k", nil); err != nil {
		t.Fatal(err)
	}
	first, again, second, signature := <-keys, <-keys, <-keys, <-keys
	if first == "" || first != again || second == "" || second == first || signature != "" {
		t.Fatalf("%q, %q, %q, %q", first, again, second, signature)
	}
}

func TestAContextThatEndsDuringAPauseIsACause(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	refused := make(chan struct{})
	client, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
		failing(503, "busy", true)(w, r)
		close(refused)
	})
	client.backoff = time.Hour
	go func() {
		<-refused
		cancel()
	}()
	_, err := client.Sign(ctx, "k", nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestARequestCarriesTheTokenAndEscapesTheKey(t *testing.T) {
	client, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			t.Errorf("Authorization: %q", r.Header.Get("Authorization"))
		}
		if r.URL.EscapedPath() != "/api/v1/keys/a%2Fb%2Fc/sign" {
			t.Errorf("path: %q", r.URL.EscapedPath())
		}
		var body map[string]string
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body["message"] != "" {
			t.Errorf("body: %v, %v", body, err)
		}
		signs(w, r)
	})
	signature, err := client.Sign(context.Background(), "a/b/c", nil)
	if err != nil || signature.Version != 2 || string(signature.Bytes) != "\x01\x02" {
		t.Fatal(signature, err)
	}
}

func TestOnlyWhatMayHelpIsRepeated(t *testing.T) {
	sign := func(c *Client) error { _, err := c.Sign(context.Background(), "k", nil); return err }
	create := func(c *Client) error { _, err := c.CreateKey(context.Background(), NewKey{}); return err }
	busy, missing := failing(503, "busy", true), failing(404, "key_not_found", false)
	for _, test := range []struct {
		name     string
		call     func(*Client) error
		handlers []http.HandlerFunc
		requests int32
		code     Code
	}{
		{"a busy service is asked again", sign, []http.HandlerFunc{busy, busy, signs}, 3, ""},
		{"and not for ever", sign, []http.HandlerFunc{busy}, 4, "busy"},
		{"a refusal stands", sign, []http.HandlerFunc{missing}, 1, "key_not_found"},
		{"a lost answer to a signature is asked for again", sign, []http.HandlerFunc{cut, signs}, 2, ""},
		{"and one to a creation", create, []http.HandlerFunc{cut, created}, 2, ""},
		{"an answer that is lost for ever is an error", create, []http.HandlerFunc{cut}, 4, "none"},
		{"a creation that was refused for now is repeated", create, []http.HandlerFunc{busy, signs}, 2, ""},
		{"a busy proxy is asked again for a signature", sign, []http.HandlerFunc{proxy(429), proxy(503), signs}, 3, ""},
		{"and for a creation", create, []http.HandlerFunc{proxy(503), created}, 2, ""},
		{"a broken proxy is not asked again", sign, []http.HandlerFunc{proxy(502)}, 1, "http"},
	} {
		client, requests := answering(t, test.handlers...)
		err := test.call(client)
		var refused *Error
		switch {
		case test.code == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.code == "none" && (err == nil || errors.As(err, &refused)):
			t.Errorf("%s: %v", test.name, err)
		case test.code != "" && test.code != "none" && !errors.Is(err, test.code):
			t.Errorf("%s: %v", test.name, err)
		}
		if requests.Load() != test.requests {
			t.Errorf("%s: %d requests, not %d", test.name, requests.Load(), test.requests)
		}
	}
}

func TestADeadlineEndsTheRepetitions(t *testing.T) {
	client, _ := answering(t, failing(503, "busy", true))
	// A random pause of up to a year is longer than the deadline, but for one in a million.
	client.retries, client.backoff = 1000, 365*24*time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := client.Sign(ctx, "k", nil); !errors.Is(err, CodeBusy) {
		t.Fatal(err)
	}
}

func TestAPauseIsAsLongAsTheServiceAsks(t *testing.T) {
	sign := func(ctx context.Context, seconds string) (int32, time.Duration) {
		client, requests := answering(t, asksToWait(seconds), signs)
		start := time.Now()
		if _, err := client.Sign(ctx, "k", nil); err != nil && !errors.Is(err, CodeBusy) {
			t.Fatal(err)
		}
		return requests.Load(), time.Since(start)
	}
	if requests, took := sign(context.Background(), "1"); requests != 2 || took < time.Second {
		t.Error(requests, took)
	}
	if requests, _ := sign(context.Background(), "31"); requests != 1 {
		t.Error("a pause of 31 seconds is too long", requests)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if requests, took := sign(ctx, "20"); requests != 1 || took > 10*time.Second {
		t.Error("a pause beyond the deadline is not begun", requests, took)
	}
}

func TestACertificateThatIsNotTrustedIsAnErrorWithACode(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(signs))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	client, err := New(server.URL, WithRetries(3, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Sign(context.Background(), "k", nil)
	var untrusted *tls.CertificateVerificationError
	if !errors.Is(err, CodeCertificate) || !errors.As(err, &untrusted) || connections.Load() != 1 {
		t.Fatal(err, connections.Load())
	}
	client, err = New(server.URL, WithHTTPClient(server.Client()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Sign(context.Background(), "k", nil); err != nil {
		t.Fatal(err)
	}
}

func TestAnAnswerOfSomebodyElseIsAnError(t *testing.T) {
	client, _ := answering(t, proxy(http.StatusBadGateway))
	var refused *Error
	if _, err := client.Sign(context.Background(), "k", nil); !errors.As(err, &refused) || refused.Status != 502 || refused.Code != "http" {
		t.Fatal(err)
	}
	client, _ = answering(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"results":[]}`) })
	if _, err := client.SignMany(context.Background(), []SignItem{{Key: "k"}}); err == nil {
		t.Fatal("a batch without its results")
	}
	if valid, err := client.Verify(context.Background(), "k", nil, nil); valid || err != nil {
		t.Fatal("an answer without a verdict is not valid", valid, err)
	}
}

func TestAddressesThatAreNoneAreRefused(t *testing.T) {
	for _, address := range []string{"", "localhost:8200", "ftp://x", "http://", "://"} {
		if _, err := New(address); err == nil {
			t.Errorf("%q", address)
		}
	}
}

// signsAll signs a batch: the signature of a message is the message. It refuses the message "no".
func signsAll(w http.ResponseWriter, r *http.Request) {
	var body struct{ Items []SignItem }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		panic(err)
	}
	var results []any
	for _, item := range body.Items {
		if string(item.Message) == "no" {
			results = append(results, map[string]any{"error": Error{Code: "key_disabled", Message: "no"}})
		} else {
			results = append(results, map[string]any{"key": item.Key, "version": 1, "signature": item.Message})
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"results": results})
}

func TestALongBatchIsSeveralRequests(t *testing.T) {
	client, requests := answering(t, signsAll)
	items := make([]SignItem, 2*MaxBatchItems+1)
	for i := range items {
		items[i] = SignItem{"k", fmt.Append(nil, i)}
	}
	items[MaxBatchItems].Message = []byte("no")
	results, err := client.SignMany(context.Background(), items)
	if err != nil || len(results) != len(items) || requests.Load() != 3 {
		t.Fatal(len(results), requests.Load(), err)
	}
	for i, result := range results {
		if i == MaxBatchItems {
			if !errors.Is(result.Err, CodeKeyDisabled) {
				t.Fatal(result.Err)
			}
		} else if result.Err != nil || string(result.Bytes) != fmt.Sprint(i) {
			t.Fatal(i, result)
		}
	}
}

func TestALongBatchKeepsItsResultsWhenALaterRequestFails(t *testing.T) {
	verifiesAll := func(w http.ResponseWriter, r *http.Request) {
		results := make([]map[string]bool, MaxBatchItems)
		for i := range results {
			results[i] = map[string]bool{"valid": true}
		}
		json.NewEncoder(w).Encode(map[string]any{"results": results})
	}
	client, _ := answering(t, signsAll, proxy(http.StatusBadGateway), verifiesAll, proxy(http.StatusBadGateway))
	items := make([]SignItem, MaxBatchItems+1)
	for i := range items {
		items[i] = SignItem{"k", fmt.Append(nil, i)}
	}
	signed, err := client.SignMany(context.Background(), items)
	if !errors.Is(err, CodeHTTP) || len(signed) != MaxBatchItems || string(signed[7].Bytes) != "7" {
		t.Fatal(len(signed), err)
	}
	verified, err := client.VerifyMany(context.Background(), make([]VerifyItem, len(items)))
	if !errors.Is(err, CodeHTTP) || len(verified) != MaxBatchItems || !verified[7].Valid {
		t.Fatal(len(verified), err)
	}
}

// until waits for a condition. A test that waits for ever ends with the time-out of the test
// program.
func until(condition func() bool) {
	for !condition() {
		runtime.Gosched()
	}
}

// holding is a batcher of a server that holds its first request until the channel is closed, and
// then a number of calls that wait for its answer. The first one is under way.
func holding(t *testing.T) (*Batcher, chan struct{}, *atomic.Int32) {
	t.Helper()
	release, arrived := make(chan struct{}), make(chan struct{})
	client, requests := answering(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		signsAll(w, r)
	}, signsAll)
	batcher := client.NewBatcher()
	t.Cleanup(batcher.Close)
	go batcher.Sign(context.Background(), "k", []byte("first"))
	<-arrived
	return batcher, release, requests
}

// waits is the number of calls that wait for the next request.
func (b *Batcher) waits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

func TestABatcherAnswersEachCallerWithItsOwn(t *testing.T) {
	batcher, release, requests := holding(t)
	var callers sync.WaitGroup
	const calls = 200
	for i := range calls {
		callers.Add(1)
		go func() {
			defer callers.Done()
			message := fmt.Append(nil, i)
			signature, err := batcher.Sign(context.Background(), "k", message)
			if err != nil {
				t.Error(i, err)
			} else if string(signature.Bytes) != string(message) {
				t.Error(i, signature)
			}
		}()
	}
	until(func() bool { return batcher.waits() == calls })
	close(release)
	callers.Wait()
	if requests.Load() != 2 {
		t.Errorf("%d requests: one for the first call, and one for all that waited", requests.Load())
	}
	if _, err := batcher.Sign(context.Background(), "k", []byte("no")); !errors.Is(err, CodeKeyDisabled) {
		t.Error(err)
	}
}

func TestACallerThatLeavesABatchTakesNobodyAlong(t *testing.T) {
	batcher, release, _ := holding(t)
	ctx, cancel := context.WithCancel(context.Background())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := batcher.Sign(ctx, "k", []byte("leaves"))
		left <- err
	}()
	go func() {
		_, err := batcher.Sign(context.Background(), "k", []byte("stays"))
		stayed <- err
	}()
	until(func() bool { return batcher.waits() == 2 })
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	if err := <-stayed; err != nil {
		t.Error(err)
	}
}

func TestAClosedBatcherEndsWhatIsUnderWayAndAsksNoMore(t *testing.T) {
	batcher, release, requests := holding(t)
	waiting := make(chan error, 1)
	go func() {
		_, err := batcher.Sign(context.Background(), "k", []byte("waits"))
		waiting <- err
	}()
	until(func() bool { return batcher.waits() == 1 })
	closed := make(chan struct{})
	go func() {
		batcher.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("Close waits for the answer")
	}
	close(release)
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	asked := requests.Load()
	if _, err := batcher.Sign(context.Background(), "k", nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if requests.Load() != asked {
		t.Error("a closed batcher asks the service")
	}
}
