use andante_admission::experiment::*;
fn main() {
    let run = |cpus: Vec<u32>, classes, deadlines, loads_percent, sets| {
        print!(
            "{}",
            Table::draw(Parameters {
                cpus,
                classes,
                deadlines,
                loads_percent,
                sets,
                seed: 77
            })
        )
    };
    run(
        vec![4],
        vec![LoadClass::Mixed],
        vec![Deadlines::Implicit],
        vec![70, 75, 80, 85, 90, 95],
        20000,
    );
    run(
        vec![8, 16],
        vec![LoadClass::Mixed],
        vec![Deadlines::Implicit],
        vec![90, 95],
        10000,
    );
    run(
        vec![4],
        vec![LoadClass::Heavy],
        vec![Deadlines::Implicit],
        vec![85, 90],
        20000,
    );
    run(
        vec![4],
        vec![LoadClass::Mixed],
        vec![Deadlines::Constrained],
        vec![75, 80, 85],
        20000,
    );
}
