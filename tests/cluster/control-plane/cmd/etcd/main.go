// The storage of the API server, as its own main has it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"

	"kubeflect.test/control-plane/tether"
)

func main() {
	tether.Hold()
	etcdmain.Main(os.Args)
}
