package kms

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestPagesAreOneSequence(t *testing.T) {
	var asked []string
	page := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.String())
			fmt.Fprint(w, text)
		}
	}
	client, _ := answering(t, page(`{"keys":[{"key":"a"},{"key":"b"}],"next":"x/y"}`), page(`{"keys":[{"key":"c"}],"next":null}`))
	var ids string
	for key, err := range client.Keys(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		ids += key.ID
	}
	if ids != "abc" || len(asked) != 2 || asked[1] != "/api/v1/keys?after=x%2Fy&limit=1000" {
		t.Fatal(ids, asked)
	}
	asked = nil
	client, _ = answering(t, page(`{"entries":[{"number":5,"who":"app"}],"next":5}`), page(`{"entries":[{"number":6}],"next":null}`))
	var numbers []uint64
	for entry, err := range client.AuditEntries(context.Background(), 5) {
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, entry.Number)
	}
	path := "/api/v1/audit-log/entries"
	if len(numbers) != 2 || numbers[1] != 6 || asked[0] != path+"?after=4&limit=1000" || asked[1] != path+"?after=5&limit=1000" {
		t.Fatal(numbers, asked)
	}
	asked = nil
	client, _ = answering(t, page(`{"entries":[]}`))
	for range client.AuditEntries(context.Background(), 0) {
		t.Fatal("an entry")
	}
	if asked[0] != path+"?limit=1000" {
		t.Fatal(asked)
	}
}

func TestASequenceThatIsLeftAsksNoMore(t *testing.T) {
	client, requests := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"keys":[{"key":"a"}],"next":"a"}`)
	})
	keys := client.Keys(context.Background())
	for range 2 {
		for key := range keys {
			if key.ID != "a" {
				t.Fatal(key.ID)
			}
			break
		}
	}
	// A sequence begins anew each time.
	if requests.Load() != 2 {
		t.Fatal(requests.Load())
	}
}

func TestAnErrorEndsASequence(t *testing.T) {
	client, _ := answering(t, failing(403, "forbidden", false))
	ctx := context.Background()
	for name, list := range map[string]func() []error{
		"keys": func() (all []error) {
			client.Keys(ctx)(func(_ *Key, err error) bool { all = append(all, err); return true })
			return
		},
		"versions": func() (all []error) {
			client.Versions(ctx, "k")(func(_ *Version, err error) bool { all = append(all, err); return true })
			return
		},
		"approvals": func() (all []error) {
			client.Approvals(ctx)(func(_ *Approval, err error) bool { all = append(all, err); return true })
			return
		},
		"entries": func() (all []error) {
			client.AuditEntries(ctx, 0)(func(_ *AuditEntry, err error) bool { all = append(all, err); return true })
			return
		},
	} {
		if errs := list(); len(errs) != 1 || !errors.Is(errs[0], CodeForbidden) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// Methods that their types' examples show.
var shownByTypes = map[string]string{
	"Error_Error": "Error", "Error_Is": "Error", "Error_Unwrap": "Error", "Code_Error": "Code",
}

func TestEveryExportedFunctionHasAnExample(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	exported, examples := []string{}, map[string]bool{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if name, ok := strings.CutPrefix(function.Name.Name, "Example"); ok {
				examples[name] = true
			} else if name := nameOf(function); function.Name.IsExported() && !strings.HasSuffix(entry.Name(), "_test.go") {
				exported = append(exported, name)
			}
		}
	}
	if len(exported) < 25 {
		t.Fatal(exported)
	}
	for _, name := range exported {
		if shown, ok := shownByTypes[name]; ok {
			name = shown
		}
		if !examples[name] {
			t.Errorf("there is no Example%s", name)
		}
	}
}

// nameOf is a function's name as the name of its example has it: TYPE_METHOD.
func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	return receiver.(*ast.Ident).Name + "_" + function.Name.Name
}
