// Package tether ends a server with the test that started it, however that test ended.
package tether

import (
	"io"
	"os"
)

// Hold ends this process when its input is closed, if KUBEFLECT_TETHER is set: the test has the other end.
func Hold() {
	if os.Getenv("KUBEFLECT_TETHER") == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}
