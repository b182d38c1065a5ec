/// What one representation costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// Bytes that each cached object keeps.
    pub(crate) bytes_per_object: f64,
    /// Allocations that each cached object keeps.
    pub(crate) allocations_per_object: f64,
    /// Allocations that each listed object takes on its way into the cache and to a subscriber, kept or not.
    pub(crate) allocations_to_list: f64,
    /// The same of a changed object.
    pub(crate) allocations_per_event: f64,
    /// The same of an object that is listed again and has not changed.
    pub(crate) allocations_to_relist: f64,
    /// The most that is held while all is listed again, to what was held before.
    pub(crate) relist_peak: f64,
}

impl Costs {
    pub(crate) fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("bytes per object", self.bytes_per_object),
            ("allocations per object", self.allocations_per_object),
            ("allocations to list an object", self.allocations_to_list),
            ("allocations per event", self.allocations_per_event),
            ("allocations to relist an unchanged object", self.allocations_to_relist),
            ("peak of a relist to what is held", self.relist_peak),
        ]
    }
}

/// Of pods of 6.1 KiB.
pub(crate) const EXPECTED: [(&str, Costs); 7] = [
    (
        "typed",
        Costs {
            bytes_per_object: 44_737.0,
            allocations_per_object: 270.1,
            allocations_to_list: 280.4,
            allocations_per_event: 287.9,
            allocations_to_relist: 3.2,
            relist_peak: 1.00,
        },
    ),
    (
        "typed-pruned",
        Costs {
            bytes_per_object: 23_532.0,
            allocations_per_object: 119.1,
            allocations_to_list: 126.4,
            allocations_per_event: 133.9,
            allocations_to_relist: 3.2,
            relist_peak: 1.01,
        },
    ),
    (
        "lazy",
        Costs {
            bytes_per_object: 6_474.0,
            allocations_per_object: 3.1,
            allocations_to_list: 6.4,
            allocations_per_event: 11.9,
            allocations_to_relist: 1.2,
            relist_peak: 1.02,
        },
    ),
    (
        "lazy-pruned",
        Costs {
            bytes_per_object: 4_295.0,
            allocations_per_object: 3.1,
            allocations_to_list: 6.4,
            allocations_per_event: 11.9,
            allocations_to_relist: 1.2,
            relist_peak: 1.03,
        },
    ),
    (
        "dynamic",
        Costs {
            bytes_per_object: 55_311.0,
            allocations_per_object: 448.1,
            allocations_to_list: 523.4,
            allocations_per_event: 528.9,
            allocations_to_relist: 3.2,
            relist_peak: 1.00,
        },
    ),
    (
        "metadata",
        Costs {
            bytes_per_object: 23_379.0,
            allocations_per_object: 181.1,
            allocations_to_list: 255.4,
            allocations_per_event: 262.9,
            allocations_to_relist: 3.2,
            relist_peak: 1.01,
        },
    ),
    (
        "projection",
        Costs {
            bytes_per_object: 361.0,
            allocations_per_object: 8.1,
            allocations_to_list: 14.4,
            allocations_per_event: 19.9,
            allocations_to_relist: 3.2,
            relist_peak: 1.47,
        },
    ),
];
