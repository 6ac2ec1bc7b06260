//! Random numbers that can be repeated: a failed test prints its seed, and `SEED` sets it again.

use std::time::SystemTime;

/// SplitMix64, which is small and good enough to mix requests.
pub struct Random(u64);

impl Random {
    /// The seed from the environment, or a new one. It is printed, and a test's output is shown only when it fails.
    pub fn seed() -> u64 {
        let asked = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = asked.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            now.as_nanos() as u64
        });
        println!("SEED={seed} repeats this run");
        seed
    }

    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}
