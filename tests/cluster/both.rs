//! The same scenarios against the embedded server and against the real one.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::metadata::PartialObjectMeta;
use kubeflect::api::ApiError;
use kubeflect::client::{
    Cluster as _, Connection, DeleteOptions, Discovery, HttpCluster, Objects, Patch, Transport,
};
use kubeflect::embedded::{ApiServer, ServingApiServer};
use kubeflect::object::StaticKind;
use kubeflect::reflector::StreamingLists;
use serde_json::json;

use crate::control_plane::{ControlPlane, User};
use crate::link::Link;
use crate::support::{Followed, config_map, quick};

/// Either server.
enum Server {
    Embedded(ServingApiServer),
    Real(Box<ControlPlane>),
}

impl Server {
    /// One of each.
    async fn both() -> [Self; 2] {
        let embedded = ApiServer::new().start().await.unwrap();
        [Self::Embedded(embedded), Self::Real(Box::new(ControlPlane::start(&[]).await))]
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Embedded(server) => {
                server.url().trim_start_matches("http://").parse().expect("it says where it is")
            }
            Self::Real(plane) => plane.address(),
        }
    }

    fn connection_through(&self, port: u16) -> Connection {
        match self {
            Self::Embedded(_) => Connection::at(&format!("http://127.0.0.1:{port}")).unwrap(),
            Self::Real(plane) => plane.connection_through(port, User::Admin),
        }
    }

    fn connection(&self) -> Connection {
        self.connection_through(self.address().port())
    }

    fn transport(&self) -> Rc<dyn Transport> {
        HttpCluster::from_connection(self.connection()).connect().unwrap()
    }

    fn maps(&self) -> Objects<ConfigMap> {
        Objects::of(self.transport()).in_namespace("default")
    }
}

fn data(text: &str) -> Patch {
    Patch::Merge(json!({ "data": { "text": text } }))
}

#[actix::test]
async fn changes_are_told_one_by_one_and_repeated_when_it_is_time() {
    for server in Server::both().await {
        let maps = server.maps();
        maps.create(&config_map("a")).await.unwrap();
        let options = quick().namespace("default").resync(Duration::from_secs(5));
        let mut followed = Followed::<ConfigMap>::start(server.connection(), options).await;
        followed.expect(&["added default/a (InitialList)"]).await;
        followed.expect(&["synced"]).await;
        maps.patch("a", &data("changed")).await.unwrap();
        assert_eq!(followed.next().await, "updated default/a (Watch)");
        assert_eq!(followed.next().await, "updated default/a (Resync)");
        maps.delete("a", &DeleteOptions::default()).await.unwrap();
        loop {
            match followed.next().await.as_str() {
                "updated default/a (Resync)" => {}
                other => break assert_eq!(other, "deleted default/a (Watch)"),
            }
        }
        followed.stop().await;
    }
}

#[actix::test]
async fn what_was_deleted_and_made_again_out_of_sight_is_another_object() {
    for server in Server::both().await {
        for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
            let maps = server.maps();
            maps.create(&config_map("a")).await.unwrap();
            let link = Link::to(server.address()).await;
            let options = quick().namespace("default").streaming_lists(streaming);
            let mut followed =
                Followed::<ConfigMap>::start(server.connection_through(link.port), options).await;
            followed.expect(&["added default/a (InitialList)"]).await;
            followed.expect(&["synced"]).await;
            followed.until_watching().await;
            link.cut();
            maps.delete("a", &DeleteOptions::default()).await.unwrap();
            maps.create(&config_map("a")).await.unwrap();
            link.mend();
            assert_eq!(followed.next().await, "deleted default/a (Watch)");
            assert_eq!(followed.next().await, "added default/a (Watch)");
            maps.delete("a", &DeleteOptions::default()).await.unwrap();
            assert_eq!(followed.next().await, "deleted default/a (Watch)");
            followed.stop().await;
        }
    }
}

#[actix::test]
async fn metadata_alone_is_reflected() {
    for server in Server::both().await {
        let maps = server.maps();
        maps.create(&config_map("a")).await.unwrap();
        maps.patch("a", &data("large, or secret")).await.unwrap();
        let mut followed = Followed::<PartialObjectMeta<ConfigMap>>::start_kind(
            server.connection(),
            ConfigMap::static_kind(),
            quick().namespace("default"),
        )
        .await;
        followed.expect(&["added default/a (InitialList)"]).await;
        followed.expect(&["synced"]).await;
        maps.patch("a", &data("changed")).await.unwrap();
        assert_eq!(followed.next().await, "updated default/a (Watch)");
        let sent: Vec<String> = followed.exchanges().iter().map(|it| it.text()).collect();
        assert!(!sent.concat().contains("secret"), "it was not even sent");
        followed.stop().await;
    }
}

#[actix::test]
async fn a_write_of_an_old_state_is_refused_and_a_second_of_a_name_too() {
    for server in Server::both().await {
        let maps = server.maps();
        let old = maps.create(&config_map("a")).await.unwrap();
        maps.patch("a", &data("newer")).await.unwrap();
        let refused = maps.replace(&old).await.unwrap_err();
        assert!(matches!(refused, ApiError::Conflict { .. }), "{refused:?}");
        let refused = maps.create(&config_map("a")).await.unwrap_err();
        assert!(matches!(refused, ApiError::AlreadyExists { .. }), "{refused:?}");
        let missing = maps.get("none").await.unwrap_err();
        assert!(matches!(missing, ApiError::NotFound { .. }), "{missing:?}");
    }
}

#[actix::test]
async fn kinds_are_discovered_with_their_names_and_verbs() {
    for server in Server::both().await {
        let transport = server.transport();
        let discovery = Discovery::run(&*transport).await.unwrap();
        assert!(discovery.problems().is_empty(), "{:?}", discovery.problems());
        for (plural, short) in [("pods", "po"), ("configmaps", "cm"), ("deployments", "deploy")] {
            let found = discovery.kinds().iter().find(|it| it.kind.plural == plural).unwrap();
            assert!(found.short_names.iter().any(|name| name == short), "{found:?}");
            assert!(found.can_be_watched() && found.preferred, "{found:?}");
        }
        let served = Discovery::serves(&*transport, &ConfigMap::static_kind()).await;
        assert!(served.unwrap());
        let mut unknown = ConfigMap::static_kind();
        unknown.plural = "nothings".into();
        assert!(!Discovery::serves(&*transport, &unknown).await.unwrap());
    }
}
