//! Reflects Kubernetes resources into actix applications.
//!
//! A [`Runtime`] keeps a cache of each kind it is asked for and tells subscriber actors of every change, whatever
//! happens to the network, the API server, or one of the actors in between. It is what client-go's informers are for
//! Go, as supervised actors.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kubeflect::embedded::ApiServer;
//! use kubeflect::{Options, Runtime};
//!
//! # actix_rt::System::new().block_on(async {
//! let runtime = Runtime::new(ApiServer::demo_cluster(1)); // or HttpCluster::new("http://127.0.0.1:8001")?
//! let pods = runtime.reflect::<Pod>(Options::all().namespace("shop")).await?;
//! pods.synced().await?;
//! assert!(pods.store().len() > 0);
//! runtime.stop().await;
//! # Ok::<(), kubeflect::Error>(())
//! # }).unwrap();
//! ```
//!
//! | to | see |
//! |---|---|
//! | reflect a kind | [`Runtime::reflect`], [`Options`] |
//! | reflect a kind known when running only | [`Runtime::reflect_kind`], [`client::Discovery`] |
//! | read the cache | [`Reflector::store`], [`cache::Store`], [`cache::Snapshot`] |
//! | be told of changes | [`Reflector::subscribe`], [`ResourceEvent`] |
//! | keep less of each object | [`object::Prune`], [`object::Lazy`], [`Resource`] |
//! | read and write single objects | [`client::Objects`] |
//! | know how it is doing | [`Reflector::status`], [`Runtime::readiness`] |
//! | show it in a browser, to Prometheus and to probes | [`dashboard::configure`], [`dashboard::Dashboard`], [`telemetry`] |
//! | read a `kubeflect.toml` | [`config::Config`] |
//! | reflect a source of your own | [`Runtime::reflect_from`], [`api::ListerWatcher`] |
//! | test without a cluster | [`embedded::ApiServer`], [`supervision::Faults`] |
#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod api;
pub mod cache;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "dashboard")]
pub mod dashboard;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod object;
pub mod reflector;
pub mod runtime;
pub mod supervision;
pub mod telemetry;

pub use k8s_openapi;
pub use kube_core;

pub use self::object::{Kind, ObjectKey, Resource, ResourceVersion};
pub use self::reflector::{
    Cause, Options, Reflector, ResourceEvent, ResourceEvents, ResourceSnapshot, SubscribeOptions,
    Subscription,
};
pub use self::runtime::{Error, Result, Runtime, RuntimeOptions, Threads};

/// The program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Those of the guide for newcomers run.
#[cfg(doctest)]
#[doc = include_str!("../MIGRATION.md")]
struct Migration;
