//! CPU time of this thread, as Linux counts it: other programs do not matter to it.

use std::fs;

/// So often is everything measured; the median counts.
const REPETITIONS: usize = 5;

/// Nanoseconds this thread has run.
pub(crate) fn thread_cpu() -> u64 {
    // The kernel counts up at each tick, and whenever somebody else might run.
    std::thread::yield_now();
    let text =
        fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells about threads");
    let run = text.split_whitespace().next().expect("it has fields");
    run.parse().expect("it is a number")
}

/// The median cost of one of `count`, in nanoseconds. `prepare` makes what `work` uses up, and is not counted.
pub(crate) fn each<T>(count: usize, prepare: impl Fn() -> T, work: impl Fn(T)) -> f64 {
    let mut costs: Vec<u64> = (0..REPETITIONS)
        .map(|_| {
            let prepared = prepare();
            let before = thread_cpu();
            work(prepared);
            thread_cpu() - before
        })
        .collect();
    costs.sort_unstable();
    costs[REPETITIONS / 2] as f64 / count as f64
}

/// The value below which `share` of the sorted values are.
pub(crate) fn rank<T: Copy>(sorted: &[T], share: f64) -> T {
    sorted[((sorted.len() as f64 * share) as usize).min(sorted.len() - 1)]
}
