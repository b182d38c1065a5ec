// Reflects the pods of a server with a shared informer of client-go, as its users do. The place is a URL, or a kubeconfig.
//
//	client-go PLACE list|stream|list-protobuf|stream-protobuf
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const gate = "KUBE_FEATURE_WatchListClient"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 1 && arguments[0] == "modes" {
		fmt.Println("list stream")
		return nil
	}
	if len(arguments) == 1 && arguments[0] == "version" {
		return tellVersion()
	}
	if len(arguments) != 2 {
		return fmt.Errorf("say PLACE and list or stream, or modes")
	}
	// Read when it is first asked for, which is later.
	lists, encoding, _ := strings.Cut(arguments[1], "-")
	os.Setenv(gate, strconv.FormatBool(lists == "stream"))
	config, err := reach(arguments[0])
	if err != nil {
		return err
	}
	config.ContentType = "application/json"
	if encoding == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
	}
	config.AcceptContentTypes = config.ContentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pods := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	tell(`{"phase":"ready"}`)
	commands := bufio.NewScanner(os.Stdin)
	commands.Scan()
	handler, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) { saw(object.(*corev1.Pod).ResourceVersion) },
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	defer stop()
	go pods.RunWithContext(running)
	readCost = func() float64 { return costOfReads(pods.GetStore()) }
	go func() {
		// cache.WaitForCacheSync looks ten times a second only.
		for !handler.HasSynced() {
			time.Sleep(time.Millisecond)
		}
		tell(fmt.Sprintf(`{"phase":"synced","objects":%d}`, len(pods.GetStore().ListKeys())))
	}()
	for commands.Scan() {
		command(commands.Text())
	}
	return commands.Err()
}

func reach(place string) (*rest.Config, error) {
	if strings.HasPrefix(place, "http:") {
		return &rest.Config{Host: place}, nil
	}
	return clientcmd.BuildConfigFromFlags("", place)
}

func tellVersion() error {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("this was built without modules")
	}
	for _, module := range build.Deps {
		if module.Path == "k8s.io/client-go" {
			fmt.Println(module.Version)
		}
	}
	return nil
}

// What the handler has seen. The load server makes each version of the time it writes it.
var (
	events        atomic.Uint64
	newest        atomic.Uint64
	awaited       atomic.Uint64
	measuresDelay atomic.Bool
	delaysLock    sync.Mutex
	delays        []uint64
)

const firstVersion = 1_000_000_000_000_000_000

func versionNow() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return firstVersion + uint64(now.Nano())
}

func saw(resourceVersion string) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	// A relist tells of every object once more; those are no changes.
	if err != nil || version <= newest.Load() {
		return
	}
	events.Add(1)
	if measuresDelay.Load() {
		delay := versionNow() - version
		delaysLock.Lock()
		delays = append(delays, delay)
		delaysLock.Unlock()
	}
	// There is one handler, and so one writer.
	newest.Store(version)
	tellIfReached()
}

func command(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case word == "until":
		version, err := strconv.ParseUint(rest, 10, 64)
		if err != nil {
			panic(err)
		}
		awaited.Store(version)
		tellIfReached()
	case word == "count":
		tell(fmt.Sprintf(`{"phase":"count","events":%d}`, events.Swap(0)))
	case word == "delays" && rest == "on":
		measuresDelay.Store(true)
	case word == "delays":
		tellDelays()
	case word == "read":
		tell(fmt.Sprintf(`{"phase":"read","ns":%.1f}`, readCost()))
	default:
		panic("the runner says " + line)
	}
}

var readCost func() float64

// CPU time of one read, in nanoseconds. All keys are read, few of them many times, each far from the one before.
func costOfReads(store cache.Store) float64 {
	const stride, reads = 7919, 1_000_000
	keys := store.ListKeys()
	mixed := make([]string, len(keys))
	for number := range keys {
		mixed[number] = keys[number*stride%len(keys)]
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, count := threadTime(), 0
	for ; count < reads; count += len(mixed) {
		for _, key := range mixed {
			if _, exists, err := store.GetByKey(key); err != nil || !exists {
				panic("a key that was just there is not")
			}
		}
	}
	return float64(threadTime()-before) / float64(count)
}

func threadTime() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}

func tellIfReached() {
	version := awaited.Load()
	// Whoever clears it tells.
	if version != 0 && newest.Load() >= version && awaited.CompareAndSwap(version, 0) {
		tell(`{"phase":"reached"}`)
	}
}

func tellDelays() {
	measuresDelay.Store(false)
	delaysLock.Lock()
	defer delaysLock.Unlock()
	slices.Sort(delays)
	rank := func(share float64) uint64 {
		at := min(int(float64(len(delays))*share), len(delays)-1)
		if at < 0 {
			return 0
		}
		return delays[at]
	}
	tell(fmt.Sprintf(`{"phase":"delays","p50":%d,"p99":%d,"p999":%d}`, rank(0.5), rank(0.99), rank(0.999)))
	delays = nil
}

var out sync.Mutex

func tell(line string) {
	out.Lock()
	defer out.Unlock()
	fmt.Println(line)
}
