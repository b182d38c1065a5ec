//! Who is refused, and what every answer forbids.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use kubeflect::dashboard::{Audience, DashboardOptions};

use crate::support::{World, local, on_a_paused_clock};

const PATHS: [&str; 9] = [
    "/",
    "/assets/app.js",
    "/assets/none",
    "/events",
    "/status.json",
    "/objects",
    "/metrics",
    "/livez",
    "/readyz",
];

fn from_elsewhere(path: &str) -> TestRequest {
    local(path).peer_addr("10.0.0.9:4711".parse().unwrap())
}

#[test]
fn a_name_that_somebody_points_here_is_refused() {
    on_a_paused_clock(async {
        let world = World::new();
        for path in PATHS {
            for host in
                ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "user@127.0.0.1"]
            {
                let request = TestRequest::get().uri(path).insert_header(("host", host));
                assert_eq!(world.ask(request).await.status, 421, "{host}{path}");
            }
            let without = TestRequest::get().uri(path);
            assert_eq!(world.ask(without).await.status, 421, "{path}");
            let twice = local(path).append_header(("host", "evil.example"));
            assert_eq!(world.ask(twice).await.status, 421, "{path}");
        }
        for host in ["localhost:8080", "127.0.0.1", "[::1]:9090"] {
            let request = TestRequest::get().uri("/status.json").insert_header(("host", host));
            assert_eq!(world.ask(request).await.status, 200, "{host}");
        }
        let hosts = vec!["status.example.com".to_owned()];
        let world = World::with(DashboardOptions { hosts, ..DashboardOptions::default() });
        let request = TestRequest::get().uri("/").insert_header(("host", "status.example.com"));
        assert_eq!(world.ask(request).await.status, 200);
    });
}

#[test]
fn a_page_from_elsewhere_is_refused() {
    on_a_paused_clock(async {
        let world = World::new();
        for path in PATHS {
            for origin in
                ["http://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8080"]
            {
                let request = local(path).insert_header(("origin", origin));
                assert_eq!(world.ask(request).await.status, 403, "{origin} {path}");
            }
            for site in ["cross-site", "same-site"] {
                let request = local(path).insert_header(("sec-fetch-site", site));
                assert_eq!(world.ask(request).await.status, 403, "{site} {path}");
            }
        }
        let own = local("/status.json")
            .insert_header(("origin", "http://127.0.0.1:8080"))
            .insert_header(("sec-fetch-site", "same-origin"));
        assert_eq!(world.ask(own).await.status, 200);
        let link = |dest: &'static str| {
            local("/")
                .insert_header(("sec-fetch-site", "cross-site"))
                .insert_header(("sec-fetch-mode", "navigate"))
                .insert_header(("sec-fetch-dest", dest))
        };
        assert_eq!(world.ask(link("document")).await.status, 200, "a link that was followed");
        assert_eq!(world.ask(link("iframe")).await.status, 403);
    });
}

#[test]
fn nothing_can_be_changed() {
    on_a_paused_clock(async {
        let world = World::new();
        for path in PATHS {
            for method in
                [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS]
            {
                let answer = world.ask(local(path).method(method)).await;
                assert_eq!((answer.status, answer.header("allow")), (405, "GET, HEAD"), "{path}");
            }
        }
        assert_eq!(world.ask(local("/status.json").method(Method::HEAD)).await.status, 200);
    });
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    on_a_paused_clock(async {
        let world = World::new();
        for path in PATHS {
            let response = world.call(local(path)).await;
            let header = |name: &str| {
                response
                    .headers()
                    .get(name)
                    .map(|value| value.to_str().unwrap())
                    .unwrap_or_default()
            };
            let policy = header("content-security-policy");
            assert!(
                policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
                "{path}"
            );
            assert!(policy.contains("frame-ancestors 'none'"), "{path}");
            assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
            assert_eq!(header("x-frame-options"), "DENY", "{path}");
            assert_eq!(header("cache-control"), "no-store", "{path}");
            assert_eq!(header("referrer-policy"), "no-referrer", "{path}");
            assert_eq!(header("access-control-allow-origin"), "", "{path}");
        }
        let refused = world.ask(TestRequest::get().uri("/").insert_header(("host", "evil"))).await;
        assert_eq!(refused.header("x-frame-options"), "DENY");
    });
}

#[test]
fn who_is_not_on_this_machine_gets_what_holds_no_objects() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a-name"]).await;
        for path in ["/", "/assets/app.js", "/events", "/status.json", "/objects"] {
            let answer = world.ask(from_elsewhere(path)).await;
            assert!(answer.status == 403 && answer.body.contains("port-forward"), "{path}");
        }
        for path in ["/metrics", "/livez", "/readyz"] {
            let answer = world.ask(from_elsewhere(path)).await;
            assert_eq!(answer.status, 200, "{path}");
            assert!(!answer.body.contains("a-name"), "{path}");
        }
        let audience = Audience::Everybody;
        let world = World::with(DashboardOptions { audience, ..DashboardOptions::default() });
        assert_eq!(world.ask(from_elsewhere("/status.json")).await.status, 200);
    });
}

#[test]
fn the_page_needs_nothing_but_its_own_files() {
    on_a_paused_clock(async {
        let world = World::new();
        let page = world.get("/").await.body;
        let parts = page.split(['"', '\'']).filter(|part| part.starts_with("assets/"));
        let assets: Vec<String> = parts.map(|part| format!("/{part}")).collect();
        assert!(assets.len() >= 3);
        let mut texts = vec![page];
        for name in ["tree.js", "events.js", "object.js", "dom.js"] {
            texts.push(world.get(&format!("/assets/{name}")).await.body);
        }
        for asset in assets {
            let answer = world.get(&asset).await;
            assert_eq!(answer.status, 200, "{asset}");
            texts.push(answer.body);
        }
        for text in texts {
            assert!(!text.is_empty() && !text.contains("<script>") && !text.contains("<style"));
            assert!(
                !text.contains(" style=\"")
                    && !text.contains("innerHTML")
                    && !text.contains("@import")
            );
            let links = text
                .split("http")
                .skip(1)
                .filter(|rest| rest.starts_with("://") || rest.starts_with("s://"));
            assert!(links.into_iter().all(|link| link.starts_with("://www.w3.org/2000/svg")));
        }
    });
}
