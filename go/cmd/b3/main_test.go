package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bulla-dev/bulla/go/blake3"
)

const abc = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"

// b3 runs the command and returns what it printed.
func b3(t *testing.T, ctx context.Context, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	status = run(ctx, args, strings.NewReader(stdin), &out, &err)
	return status, out.String(), err.String()
}

func TestOutputs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	odd := filepath.Join(dir, "a\nb")
	for _, p := range []string{path, odd} {
		if err := os.WriteFile(p, []byte("abc"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(dir, "missing")
	cases := []struct {
		name           string
		args           []string
		status         int
		stdout, stderr string
	}{
		{"standard input", nil, exitOK, abc + "  -\n", ""},
		{"a file", []string{path}, exitOK, abc + "  " + path + "\n", ""},
		{"a line end in a name", []string{odd}, exitOK, `\` + abc + "  " + dir + `/a\nb` + "\n", ""},
		{"JSON", []string{"-json", "-"}, exitOK, `{"file":"-","hash":"` + abc + `"}` + "\n", ""},
		{"one of two", []string{missing, path}, exitFailed, abc + "  " + path + "\n", "no such file"},
		{"a folder", []string{dir}, exitFailed, "", "is a directory"},
		{"a wrong flag", []string{"-x"}, exitUsage, "", "Usage: b3"},
		{"a wrong number", []string{"-j", "-1"}, exitUsage, "", "negative"},
		{"help", []string{"-h"}, exitOK, "", "Examples:"},
		{"version", []string{"-version"}, exitOK, "b3, kernel " + blake3.Kernel() + "\n", ""},
	}
	for _, c := range cases {
		status, stdout, stderr := b3(t, context.Background(), "abc", c.args...)
		if status != c.status || stdout != c.stdout || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%s: %d, %q, %q", c.name, status, stdout, stderr)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if status, stdout, _ := b3(t, ctx, "abc"); status != exitInterrupted || stdout != "" {
		t.Errorf("%d, %q", status, stdout)
	}
}

func TestProgress(t *testing.T) {
	var b strings.Builder
	progress(&b, "x", blake3.Progress{Processed: 5e8, Total: 1e9, Elapsed: time.Second})
	progress(&b, "x", blake3.Progress{Processed: 5e8, Total: -1, Elapsed: time.Second})
	progress(&b, "x", blake3.Progress{Processed: 5e8, Total: -1, Elapsed: time.Millisecond})
	if want := "\r\x1b[K 50 %     500 MB/s  x\r\x1b[K500 MB     500 MB/s  x"; b.String() != want {
		t.Errorf("%q", b.String())
	}
}
