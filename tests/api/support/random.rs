//! Chance that can be had again: the seed of a storm is printed when it fails, and `SEED` brings it back.

use std::time::SystemTime;

/// SplitMix64: small, and good enough to stir requests.
pub struct Random(u64);

impl Random {
    /// The seed that the environment asks for, or a new one. A test prints it; only a failed test's words are shown.
    pub fn seed() -> u64 {
        let asked = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = asked.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            now.as_nanos() as u64
        });
        println!("SEED={seed} brings this storm back");
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
