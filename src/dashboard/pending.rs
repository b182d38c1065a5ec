use super::{Dashboard, lock};

impl Dashboard {
    /// Counts something as not ready, and shows why, until it is [ready to be reflected](Self::clear_pending): for
    /// programs that have to find out first what to reflect. A reflector counts by itself.
    ///
    /// ```
    /// use kubeflect::dashboard::Dashboard;
    /// use kubeflect::{Runtime, RuntimeOptions};
    ///
    /// # actix_rt::System::new().block_on(async {
    /// let dashboard = Dashboard::new(Runtime::without_cluster(RuntimeOptions::default()));
    /// dashboard.set_pending("widgets", "the server has no kind \"widgets\"");
    /// assert_eq!(dashboard.pending().len(), 1);
    /// // Later, when there is a reflector of them:
    /// dashboard.clear_pending("widgets");
    /// # assert!(dashboard.pending().is_empty());
    /// # });
    /// ```
    pub fn set_pending(&self, name: impl Into<String>, reason: impl Into<String>) {
        lock(&self.inner.pending).insert(name.into(), reason.into());
    }

    /// Counts it no more.
    pub fn clear_pending(&self, name: &str) {
        lock(&self.inner.pending).remove(name);
    }

    /// What is to be reflected and is not yet, and why.
    pub fn pending(&self) -> Vec<(String, String)> {
        lock(&self.inner.pending).clone().into_iter().collect()
    }
}
