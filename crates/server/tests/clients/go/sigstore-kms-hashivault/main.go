// Sigstore's library for keys of Vault, as a plugin of cosign. Debian builds cosign without that
// library, and lets plugins have it: cosign starts sigstore-kms-hashivault for hashivault:// keys.
package main

import (
	"fmt"
	"os"

	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/handler"
	"github.com/sigstore/sigstore/pkg/signature/kms/hashivault"
)

func main() {
	if err := run(); err != nil {
		// cosign reads the answer, and shows its error.
		_ = handler.WriteErrorResponse(os.Stdout, err)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	args, err := handler.GetPluginArgs(os.Args)
	if err != nil {
		return err
	}
	key, err := hashivault.LoadSignerVerifier(hashivault.ReferenceScheme+args.InitOptions.KeyResourceID, args.InitOptions.HashFunc)
	if err != nil {
		return err
	}
	_, err = handler.Dispatch(os.Stdout, os.Stdin, args, key)
	return err
}
