// Published fetches the Go modules of this checkout as a user would, so that their tests can run as
// they will for a user: without the folders above them, from the zip that a module proxy delivers.
//
//	go run . FOLDER
//
// It empties FOLDER, makes a module proxy in it, and gets each module from that proxy into a new
// module. It prints the folder of each module, one per line. Modules with a replace directive work
// only in a checkout; it leaves them out.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// version is the version of every module here. Nothing is published under it.
const version = "v0.0.1"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "published:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	paths, err := publish(filepath.Join("..", ".."), filepath.Join(folder, "proxy"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return errors.New("there is no module to publish")
	}
	return fetch(folder, paths)
}

// publish puts every module below root that users can fetch into a proxy, and returns their paths.
func publish(root, proxy string) (paths []string, err error) {
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != "go.mod" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mod, err := modfile.Parse(file, text, nil)
		if err != nil {
			return err
		}
		path := mod.Module.Mod.Path
		if len(mod.Replace) > 0 || strings.Contains(path, "/internal/") {
			return nil
		}
		paths = append(paths, path)
		return put(proxy, module.Version{Path: path, Version: version}, text, filepath.Dir(file))
	})
	return paths, err
}

// put writes the files of a module in the layout of the module proxy protocol.
func put(proxy string, m module.Version, mod []byte, source string) error {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := zip.CreateFromDir(&archive, m, source); err != nil {
		return err
	}
	folder := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"list":              []byte(m.Version + "\n"),
		m.Version + ".info": []byte(`{"Version":"` + m.Version + `"}`),
		m.Version + ".mod":  mod,
		m.Version + ".zip":  archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// fetch gets each module into a new one, like a user who has fetched nothing before. The caches are
// in the folder too: an earlier run may have fetched other files under the same version.
func fetch(folder string, paths []string) error {
	cached, err := goCommand(folder, nil, "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	upstream, err := goCommand(folder, nil, "env", "GOPROXY")
	if err != nil {
		return err
	}
	environment := []string{
		"GOPROXY=" + strings.Join([]string{
			"file://" + filepath.ToSlash(filepath.Join(folder, "proxy")),
			"file://" + filepath.ToSlash(filepath.Join(cached, "cache", "download")),
			upstream,
		}, ","),
		"GONOSUMDB=" + strings.Join(paths, ","), // the others are checked
		"GONOPROXY=none",
		"GOFLAGS=-modcacherw", // so that the folder can be removed
		"GOWORK=off",
	}
	for i, path := range paths {
		user := filepath.Join(folder, fmt.Sprintf("user%d", i))
		if err := os.Mkdir(user, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(user, "go.mod"), []byte("module user\n"), 0o644); err != nil {
			return err
		}
		environment := append(environment, "GOMODCACHE="+filepath.Join(user, "cache"))
		if _, err := goCommand(user, environment, "get", path+"@"+version); err != nil {
			return err
		}
		where, err := goCommand(user, environment, "list", "-m", "-f", "{{.Dir}}", path)
		if err != nil {
			return err
		}
		fmt.Println(where)
	}
	return nil
}

func goCommand(folder string, environment []string, arguments ...string) (string, error) {
	command := exec.Command("go", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
