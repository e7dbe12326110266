//! Which of many draws: of the workloads of a family, or of the perturbations of a scenario.

use andante_sim::Random;
use serde::{Deserialize, Serialize};

/// Which draw of a family, or of the perturbations of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawId {
    /// The seed.
    pub seed: u64,
    /// Its number, from 0.
    pub number: u64,
}

impl DrawId {
    /// The random numbers of one place of the draw.
    pub fn stream(self, place: &str) -> Random {
        // FNV-1a (Fowler, Noll, Vo), 64 bits.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let of_place = place.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        let of_seed = Random::new(self.seed).bits();
        let of_draw = Random::new(of_seed ^ self.number).bits();
        Random::new(of_draw ^ of_place)
    }
}

impl std::fmt::Display for DrawId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.seed, self.number)
    }
}

impl std::str::FromStr for DrawId {
    type Err = String;

    /// `SEED/NUMBER`
    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (seed, number) = text.split_once('/')?;
            Some(Self {
                seed: seed.parse().ok()?,
                number: number.parse().ok()?,
            })
        };
        parse().ok_or_else(|| "give SEED/NUMBER, two whole numbers, e.g. 1/17".to_owned())
    }
}
