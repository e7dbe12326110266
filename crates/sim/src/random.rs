//! Random numbers that a seed brings back on every machine.

/// splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 … `bound` - 1. `bound` > 0; its bias is below 2^-32 for bounds below 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// Above 0, at most 1.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Exponentially distributed, with this mean. The logarithm is computed by the same code on
    /// every machine.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(self.unit()) * mean
    }

    /// Normally distributed (Box, Muller 1958).
    pub fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        mean + sd * radius * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeatable_and_about_right() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..20_000)
                .map(|_| random.exponential(3.0))
                .collect::<Vec<_>>()
        };
        let mean = draw(1).iter().sum::<f64>() / 2e4;
        assert!((mean - 3.0).abs() < 0.1, "{mean}");
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut random = Random::new(7);
        let normal: Vec<f64> = (0..20_000).map(|_| random.normal(5.0, 2.0)).collect();
        let mean = normal.iter().sum::<f64>() / 2e4;
        let sd = (normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e4).sqrt();
        assert!(
            (mean - 5.0).abs() < 0.05 && (sd - 2.0).abs() < 0.05,
            "{mean} {sd}"
        );
    }
}
