use std::time::Duration;

/// Reads `30s`, `10m`, `1h` or `500ms`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

/// Reads `64MiB`, `10MB`, `512KiB` or `1000B`.
pub(super) fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let bytes: u64 = match unit {
        "B" => 1,
        "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(bytes)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(duration("90s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("2h"), Some(Duration::from_secs(7_200)));
        for wrong in ["", "90", "s", "-1s", "1.5s", "1 fortnight", "99999999999999999999s"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
        assert_eq!(duration("18446744073709551615h"), None);
    }

    #[test]
    fn a_size_has_a_unit() {
        assert_eq!(size("64MiB"), Some(64 << 20));
        assert_eq!(size("10 MB"), Some(10_000_000));
        assert_eq!(size("64"), None);
        assert_eq!(size("64Mib"), None);
    }
}
