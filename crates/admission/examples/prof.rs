use andante_admission::experiment::*;
use std::time::Instant;
fn main() {
    for deadlines in [Deadlines::Implicit, Deadlines::Constrained] {
        for class in LoadClass::ALL {
            for cpus in [4, 16] {
                for load in [80, 95, 100] {
                    let g = Generator {
                        class,
                        deadlines,
                        cpus,
                        load_percent: load,
                    };
                    let sets: Vec<_> = (0..100)
                        .map(|s| g.draw(&mut Random::new(g.seed_of(1, s))))
                        .collect();
                    print!("{deadlines:?} {class:?} {cpus} {load}:");
                    for a in Algorithm::ALL {
                        let t = Instant::now();
                        let n = sets
                            .iter()
                            .filter(|s| place_all(s, cpus, &a.policy()).is_some())
                            .count();
                        print!(" {n} {:.0}us", t.elapsed().as_secs_f64() * 1e6 / 100.0);
                    }
                    println!();
                }
            }
        }
    }
}
