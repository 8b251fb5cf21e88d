// B3 prints the BLAKE3 hashes of files. It is an example for package blake3, and good enough for
// real use.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/bulla-dev/bulla/go/blake3"
)

const usage = `Usage: b3 [-json] [-j N] [FILE...]

Prints the BLAKE3 hash of each FILE. Without FILE, or where FILE is -, reads standard input.
A long file shows its progress if standard error is a terminal.

  -json      print one JSON object for each file
  -j N       use up to N goroutines for a file; 1 is best on a hard disk (default: one for each processor)
  -version   print the kernel in use

Examples:
  b3 *.iso
  tar c folder | b3

Exit status: 0 if all files were hashed, 1 if one could not be, 2 for wrong arguments, 130 if interrupted.
`

// Exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command is one run of b3.
type command struct {
	json    bool
	workers int
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	bar     bool // whether to show progress
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := command{stdin: stdin, stdout: stdout, stderr: stderr, bar: isTerminal(stderr)}
	flags := flag.NewFlagSet("b3", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	flags.BoolVar(&c.json, "json", false, "")
	flags.IntVar(&c.workers, "j", 0, "")
	version := flags.Bool("version", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case c.workers < 0:
		fmt.Fprintln(stderr, "b3: -j must not be negative")
		return exitUsage
	case *version:
		fmt.Fprintln(stdout, "b3, kernel", blake3.Kernel())
		return exitOK
	}
	paths := flags.Args()
	if len(paths) == 0 {
		paths = []string{"-"}
	}
	status := exitOK
	for _, path := range paths {
		err := c.file(ctx, path)
		if ctx.Err() != nil {
			fmt.Fprintln(stderr, "b3: interrupted")
			return exitInterrupted
		}
		if err != nil {
			fmt.Fprintln(stderr, "b3:", err)
			status = exitFailed
		}
	}
	return status
}

// file hashes one file and prints the result.
func (c *command) file(ctx context.Context, path string) error {
	opts := &blake3.ReadOptions{Concurrency: c.workers}
	if c.bar {
		opts.Progress = func(p blake3.Progress) { progress(c.stderr, path, p) }
		defer fmt.Fprint(c.stderr, "\r\x1b[K")
	}
	var sum [32]byte
	var err error
	if path == "-" {
		sum, err = blake3.HashReader(ctx, c.stdin, opts)
	} else {
		sum, err = blake3.HashFile(ctx, path, opts)
	}
	if err != nil {
		return err
	}
	return c.print(path, sum)
}

func (c *command) print(path string, sum [32]byte) error {
	digest := hex.EncodeToString(sum[:])
	if c.json {
		return json.NewEncoder(c.stdout).Encode(struct {
			File string `json:"file"`
			Hash string `json:"hash"`
		}{path, digest})
	}
	_, err := fmt.Fprintln(c.stdout, line(path, digest))
	return err
}

// line is the line that b3sum prints. Names with line ends or backslashes are escaped, and marked
// by a backslash before the hash.
func line(path, digest string) string {
	escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(path)
	if escaped != path {
		digest = `\` + digest
	}
	return digest + "  " + escaped
}

// progress shows progress on one line, once a file has taken some time.
func progress(w io.Writer, path string, p blake3.Progress) {
	if p.Elapsed < 300*time.Millisecond {
		return
	}
	rate := float64(p.Processed) / 1e6 / p.Elapsed.Seconds()
	if p.Total > 0 {
		fmt.Fprintf(w, "\r\x1b[K%3.0f %%  %6.0f MB/s  %s", 100*float64(p.Processed)/float64(p.Total), rate, path)
		return
	}
	fmt.Fprintf(w, "\r\x1b[K%.0f MB  %6.0f MB/s  %s", float64(p.Processed)/1e6, rate, path)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
