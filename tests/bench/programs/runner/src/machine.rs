use std::fs;
use std::hint;
use std::thread;

/// What this runs on: `2 cores, 24 GiB virtual machine`.
pub fn kind() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    // The kernel keeps some for itself.
    let gib = (kib.unwrap_or_default() / f64::from(1 << 20)).ceil();
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let place = if processor.contains("hypervisor") { "virtual machine" } else { "machine" };
    format!("{cores} cores, {gib:.0} GiB {place}")
}

/// Touches as much memory, and gives it back. A virtual machine's host takes free memory away, and whoever touches it next
/// pays for it to come again: that is not to be the client, now and then.
pub fn warm(bytes: usize) {
    hint::black_box(vec![1_u8; bytes]);
}
