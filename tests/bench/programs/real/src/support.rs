use std::time::Duration;

use tokio::time::Instant;

/// Looks again and again, until it holds or the time is over.
pub(crate) async fn eventually(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    holds()
}
