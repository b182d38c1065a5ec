// A shared informer of client-go that says what it sees: one JSON value on each line.
//
//	informer KUBECONFIG GROUP/VERSION/KIND/PLURAL LABELS     the group of core kinds is empty
//
// It tells `added`, `updated`, `deleted`, `synced` and `failed`. Asked for its `store` by a line of input it tells that.
// Told to `ask` it asks a thousand times for the version of the server, over the connection it watches by, and tells
// `answered`. When its input ends, so does it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 3 {
		return fmt.Errorf("say KUBECONFIG GROUP/VERSION/KIND/PLURAL LABELS")
	}
	resource, err := parse(arguments[1])
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", arguments[0])
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	selected := func(options *metav1.ListOptions) { options.LabelSelector = arguments[2] }
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, "", 0, cache.Indexers{}, selected).Informer()
	running, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := follow(running, informer); err != nil {
		return err
	}
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		switch requests.Text() {
		case "store":
			tell(contents(informer.GetStore()))
		case "ask":
			if err := ask(config); err != nil {
				return err
			}
			tell(line{"event": "answered"})
		default:
			return fmt.Errorf("say store or ask")
		}
	}
	return requests.Err()
}

// ask asks for something small again and again.
func ask(config *rest.Config) error {
	hurried := rest.CopyConfig(config)
	hurried.QPS = -1
	client, err := discovery.NewDiscoveryClientForConfig(hurried)
	if err != nil {
		return err
	}
	for range 1000 {
		if _, err := client.ServerVersion(); err != nil {
			return err
		}
	}
	return nil
}

func parse(kind string) (schema.GroupVersionResource, error) {
	parts := strings.Split(kind, "/")
	if len(parts) != 4 {
		return schema.GroupVersionResource{}, fmt.Errorf("a kind is GROUP/VERSION/KIND/PLURAL")
	}
	return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[3]}, nil
}

// follow runs the informer and tells what it sees.
func follow(running context.Context, informer cache.SharedIndexInformer) error {
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		tell(line{"event": "failed", "message": err.Error()})
	})
	if err != nil {
		return err
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tellObject("added", object) },
		UpdateFunc: func(_, object any) { tellObject("updated", object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			tellObject("deleted", object)
		},
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(running)
	go func() {
		if cache.WaitForCacheSync(running.Done(), handler.HasSynced) {
			tell(line{"event": "synced"})
		}
	}()
	return nil
}

type line map[string]any

func tellObject(event string, object any) {
	it := object.(*unstructured.Unstructured)
	tell(line{
		"event":           event,
		"namespace":       it.GetNamespace(),
		"name":            it.GetName(),
		"uid":             it.GetUID(),
		"resourceVersion": it.GetResourceVersion(),
	})
}

// contents is what it believes to be there: "default/a": ["uid", "7"].
func contents(store cache.Store) line {
	objects := map[string][2]string{}
	for _, object := range store.List() {
		it := object.(*unstructured.Unstructured)
		key := it.GetNamespace() + "/" + it.GetName()
		objects[key] = [2]string{string(it.GetUID()), it.GetResourceVersion()}
	}
	return line{"event": "store", "objects": objects}
}

var out sync.Mutex

func tell(value line) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	out.Lock()
	defer out.Unlock()
	fmt.Println(string(text))
}
