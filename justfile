# CI runs these and nothing else. Each is one plain line, which works without just.

default: fmt lint doc test

fmt:
    cargo fmt --check

lint:
    cargo clippy --all-targets --all-features -- -D warnings

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features --document-private-items

test:
    cargo test

# Against a real API server and etcd. Needs Go: they are built from their modules, which takes minutes the first time.
cluster:
    cargo test --test cluster

# What a library user builds: without the program, and without the client.
features:
    cargo check --no-default-features --features k8s-openapi/latest
    cargo check --no-default-features --features client,k8s-openapi/latest
    cargo check --no-default-features --features embedded,k8s-openapi/latest

# Needs cargo-deny.
deny:
    cargo deny check bans licenses sources

# 200 idle reflectors in one process: threads, memory, CPU.
idle:
    cargo bench --bench idle

# A list of 100 000 pods, 600 MB: what it takes beside the objects.
list-memory:
    cargo bench --bench list_memory

# Needs cargo-fuzz and a nightly compiler. TARGET is frames, list or kubeconfig.
fuzz target seconds="60":
    mkdir -p tests/fuzz/corpus/{{target}}
    cargo +nightly fuzz run --fuzz-dir tests/fuzz -s none {{target}} tests/fuzz/corpus/{{target}} tests/fuzz/seeds/{{target}} -- -max_total_time={{seconds}}

# Reads while 100 000 objects are listed again.
relist:
    cargo bench --bench relist
