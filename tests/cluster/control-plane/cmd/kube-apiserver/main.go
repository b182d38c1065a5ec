// The API server of Kubernetes, as its own main has it.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"kubeflect.test/control-plane/tether"
)

func main() {
	tether.Hold()
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
