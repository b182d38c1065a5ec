# Each is one plain line, which works without just. What has to pass is in .ci/run.

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
# Most tests wait most of the time: more run at once than there are cores.
cluster:
    cargo test --test cluster -- --test-threads 8

# The page in a real browser. Needs node, npm and Chromium. SCREENSHOTS=1 takes the pictures anew.
browser:
    tests/browser/run

# What a library user builds: without the program, and without the client.
features:
    cargo check --no-default-features --features k8s-openapi/latest
    cargo check --no-default-features --features client,k8s-openapi/latest
    cargo check --no-default-features --features embedded,k8s-openapi/latest
    cargo check --no-default-features --features dashboard,k8s-openapi/latest
    cargo check --no-default-features --features config,k8s-openapi/latest

# The program in a real terminal. Needs tmux.
terminal:
    tests/terminal/run

# Needs cargo-deny.
deny:
    cargo deny check bans licenses sources

# 200 idle reflectors in one process: threads, memory, CPU.
idle:
    cargo bench --bench idle

# A list of 100 000 pods, 600 MB: what it takes beside the objects.
list-memory:
    cargo bench --bench list_memory

# Needs cargo-fuzz and a nightly compiler. TARGET is frames, list, head, read or kubeconfig.
fuzz target seconds="60":
    mkdir -p tests/fuzz/corpus/{{target}}
    cargo +nightly fuzz run --fuzz-dir tests/fuzz -s none {{target}} tests/fuzz/corpus/{{target}} tests/fuzz/seeds/{{target}} -- -max_total_time={{seconds}}

# Reads while 100 000 objects are listed again.
relist:
    cargo bench --bench relist

# What kubeflect, kube-rs and client-go cost beside each other. Needs Go for the last. --help tells the options.
side-by-side *options:
    tests/bench/side-by-side {{options}}

# The parts of the pipeline, and a whole reflector: CPU time.
bench:
    cargo bench --bench parts
    cargo bench --bench whole

# Instructions an object and an event take, held to numbers. Needs valgrind.
instructions:
    cargo bench --bench instructions
