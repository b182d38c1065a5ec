use super::reflections::Reflections;
use crate::cli::screen::Screen;

/// What somebody who has just started the program wants to know.
pub(super) struct Banner {
    server: String,
    is_demo: bool,
}

impl Banner {
    pub(super) fn of_cluster(server: String) -> Self {
        Self { server, is_demo: false }
    }

    pub(super) fn of_demo(server: String) -> Self {
        Self { server, is_demo: true }
    }

    pub(super) fn is_demo(&self) -> bool {
        self.is_demo
    }

    pub(super) fn show(&self, page: Option<String>, reflections: &Reflections, screen: &Screen) {
        let server = &self.server;
        if self.is_demo {
            screen.note(&format!("cluster    {server}  (its own: nothing of yours is touched)"));
            screen.note(&format!("kubectl    kubectl --server {server} get pods -A -w"));
            screen.note("yours      kubeflect --context NAME, or KUBECONFIG=FILE kubeflect");
        } else {
            screen.note(&format!("cluster    {server}"));
        }
        if let Some(page) = page {
            screen.note(&format!("page       {page}"));
        }
        screen.note(&format!("reflects   {}", reflections.names().join(", ")));
        for (name, url) in reflections.sink_urls() {
            screen.note(&format!("{name:<10} {url}/events/NAME"));
        }
    }
}
