//! Reflects Kubernetes resources.
fn main() {}
