// What the tests do to etcd behind the back of the API server.
//
//	etcd-tool compact ENDPOINT           forgets all history, and prints the revision
//	etcd-tool save ENDPOINT FILE         writes a snapshot
//	etcd-tool restore FILE FOLDER PEER   makes a data folder of a snapshot; revisions go back to where they were
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	clientsnapshot "go.etcd.io/etcd/client/v3/snapshot"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "etcd-tool:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("say compact, save or restore")
	}
	context, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	switch command, rest := arguments[0], arguments[1:]; {
	case command == "compact" && len(rest) == 1:
		return compact(context, rest[0])
	case command == "save" && len(rest) == 2:
		return save(context, rest[0], rest[1])
	case command == "restore" && len(rest) == 3:
		return restore(rest[0], rest[1], rest[2])
	default:
		return fmt.Errorf("can not %q: say compact, save or restore", arguments)
	}
}

func compact(context context.Context, endpoint string) error {
	client, err := connect(context, endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := client.Get(context, "none", clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	revision := answer.Header.Revision
	if _, err := client.Compact(context, revision, clientv3.WithCompactPhysical()); err != nil {
		return err
	}
	fmt.Println(revision)
	return nil
}

func save(context context.Context, endpoint, file string) error {
	config := configuration(context, endpoint)
	_, err := clientsnapshot.SaveWithVersion(context, zap.NewNop(), config, file)
	return err
}

func restore(file, folder, peer string) error {
	return snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath:        file,
		Name:                "default",
		OutputDataDir:       folder,
		PeerURLs:            []string{peer},
		InitialCluster:      "default=" + peer,
		InitialClusterToken: "restored",
	})
}

func connect(context context.Context, endpoint string) (*clientv3.Client, error) {
	return clientv3.New(configuration(context, endpoint))
}

func configuration(context context.Context, endpoint string) clientv3.Config {
	return clientv3.Config{
		Context:     context,
		Endpoints:   []string{endpoint},
		DialTimeout: 10 * time.Second,
		Logger:      zap.NewNop(),
	}
}
