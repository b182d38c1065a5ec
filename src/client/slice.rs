use std::time::Duration;

use tokio::time::Instant;

/// After so many objects, or so long, others get a turn.
const OBJECTS: usize = 256;
const TIME: Duration = Duration::from_millis(2);

/// Work since others had a turn.
#[derive(Debug)]
pub(super) struct Slice {
    objects: usize,
    began: Instant,
}

impl Slice {
    pub(super) fn begin() -> Self {
        Self { objects: 0, began: Instant::now() }
    }

    /// One object more was read. Waits until others had their turn, if it is theirs.
    pub(super) async fn count(&mut self) {
        self.objects += 1;
        if self.objects >= OBJECTS || self.began.elapsed() >= TIME {
            tokio::task::yield_now().await;
            *self = Self::begin();
        }
    }
}
