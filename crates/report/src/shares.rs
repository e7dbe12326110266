//! Who had the CPUs when: the classes' shares over time, stacked.

use andante_result::figures::number;
use andante_result::title::scheduler_title;
use andante_result::{ClassResult, RunResult, SchedulerResult};
use maud::{Markup, html};

use super::Page;
use super::svg::{Axis, Plot};

/// More steps than this cannot be told apart on paper.
const MOST_STEPS: usize = 180;
/// An inner class is drawn only if its own tasks had at least this much of the CPUs.
const LEAST_OWN_SHARE: f64 = 0.005;
/// Colours the style sheet has for classes.
const COLOURS: usize = 8;

/// A layer of the stack: a leaf class, or the tasks an inner class holds itself.
struct Layer<'a> {
    class: &'a ClassResult,
    inner: bool,
    /// Place of the class in the result: gives the colour.
    place: usize,
    /// Cumulative CPU time at each instant [ns].
    cpu_ns: Vec<u64>,
}

impl Layer<'_> {
    fn name(&self) -> String {
        if self.inner {
            format!("{} itself", self.class.path)
        } else {
            self.class.path.clone()
        }
    }
}

/// The instants of a scheduler's samples and what each layer had by then.
struct Stack<'a> {
    /// [ns], beginning with 0.
    at_ns: Vec<u64>,
    layers: Vec<Layer<'a>>,
    cpus: f64,
}

/// The stacks of every scheduler of `result` that has samples; nothing if none has.
pub(super) fn section(page: &Page, result: &RunResult) -> Markup {
    let stacks: Vec<(&SchedulerResult, Stack)> = result
        .schedulers
        .iter()
        .filter_map(|s| Some((s, stack(s, result.cpus)?)))
        .collect();
    let Some((_, widest)) = stacks.iter().max_by_key(|(_, stack)| stack.layers.len()) else {
        return html! {};
    };
    let last_ns = |stack: &Stack| stack.at_ns.last().copied().unwrap_or(0);
    let length_s = stacks.iter().map(|(_, s)| last_ns(s)).max().unwrap_or(0) as f64 / 1e9;
    let x = Axis::linear_exact(0.0, length_s, 6);
    html! {
        section {
            h2 { "Shares over time" }
            figure {
                ul.legend {
                    @for layer in widest.layers.iter().rev() {
                        li { span class=(format!("swatch class-{}", layer.place % COLOURS)) {} (layer.name()) }
                    }
                }
                div.panels {
                    @for (scheduler, stack) in &stacks { (panel(page, scheduler, stack, &x)) }
                }
                figcaption {
                    "The part of all CPU time each class had, stacked. Dashed lines are where the \
                     borders lie while every class wants to run. Empty space above the stack is time in no \
                     class of the scenario: idle, or the system's own."
                }
            }
        }
    }
}

fn stack(scheduler: &SchedulerResult, cpus: u32) -> Option<Stack<'_>> {
    let (first, count) = (*scheduler.sample_ns.first()?, scheduler.sample_ns.len());
    let zero = first > 0;
    let stride = count.div_ceil(MOST_STEPS);
    // The last sample always counts, whatever the stride.
    let picked: Vec<usize> = (0..count)
        .rev()
        .step_by(stride)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let thin = |values: &dyn Fn(usize) -> u64| -> Vec<u64> {
        zero.then_some(0)
            .into_iter()
            .chain(picked.iter().map(|&i| values(i)))
            .collect()
    };
    let at_ns = thin(&|i| scheduler.sample_ns[i]);
    if at_ns.len() < 2 || scheduler.classes.is_empty() {
        return None;
    }
    let classes = &scheduler.classes;
    let machine_ns = (at_ns[at_ns.len() - 1] - at_ns[0]) as f64 * f64::from(cpus);
    let layers = classes.iter().enumerate().map(|(place, class)| {
        let children: Vec<_> = classes
            .iter()
            .filter(|c| is_child(c, class, classes))
            .collect();
        let sample = |class: &ClassResult, i: usize| class.samples.get(i).copied().unwrap_or(0);
        let own_ns = |i| {
            let theirs: u64 = children.iter().map(|c| sample(c, i)).sum();
            sample(class, i).saturating_sub(theirs)
        };
        Layer {
            class,
            inner: !children.is_empty(),
            place,
            cpu_ns: thin(&own_ns),
        }
    });
    let drawn = |layer: &Layer| {
        let own_ns = layer.cpu_ns.last().copied().unwrap_or(0) as f64;
        !layer.inner || own_ns >= LEAST_OWN_SHARE * machine_ns
    };
    Some(Stack {
        at_ns,
        layers: layers.filter(drawn).collect(),
        cpus: f64::from(cpus.max(1)),
    })
}

/// Whether `class` lies below `parent` with no other of `classes` between them.
fn is_child(class: &ClassResult, parent: &ClassResult, classes: &[ClassResult]) -> bool {
    let below = |low: &ClassResult, high: &ClassResult| {
        let rest = low.path.strip_prefix(high.path.trim_end_matches('/'));
        low.path != high.path && rest.is_some_and(|rest| rest.starts_with('/'))
    };
    below(class, parent) && !classes.iter().any(|c| below(class, c) && below(c, parent))
}

fn panel(page: &Page, scheduler: &SchedulerResult, stack: &Stack, x: &Axis) -> Markup {
    let y = Axis::linear_exact(0.0, 100.0, 4);
    let received = |layer: &Layer| {
        let class = layer.class;
        format!(
            "{} {} %",
            class.path,
            number(class.share_received * 100.0, 1)
        )
    };
    let facts = stack
        .layers
        .iter()
        .map(received)
        .collect::<Vec<_>>()
        .join(", ");
    let plot = Plot {
        title: &format!(
            "Shares of the CPUs over time under {}",
            scheduler_title(&scheduler.name)
        ),
        description: &format!("Over the whole run: {facts}."),
        x,
        y: &y,
        x_label: "time [s]",
        y_label: "of all CPU time [%]",
        height_px: 180.0,
    };
    let borders = borders(stack);
    let geometry = html! {
        @for (layer, border) in stack.layers.iter().zip(borders.windows(2)) {
            path class=(format!("area class-{}", layer.place % COLOURS))
                d=(area(&plot, stack, &border[0], &border[1])) {
                title { (layer.name()) }
            }
        }
        @for asked in asked_borders(stack) {
            path.asked d=(plot.path().move_to(0.0, asked).line_to(f64::MAX, asked).data()) {}
        }
    };
    html! {
        div class=(format!("panel {}", page.colour(&scheduler.name))) {
            h3 { (page.name(&scheduler.name)) }
            (plot.draw(geometry, html! {}))
        }
    }
}

/// The borders of the layers from the bottom up, in each window between two samples [%]: one more
/// than there are layers.
fn borders(stack: &Stack) -> Vec<Vec<f64>> {
    let mut borders = vec![vec![0.0; stack.at_ns.len() - 1]];
    for layer in &stack.layers {
        let base = &borders[borders.len() - 1];
        let windows = stack
            .at_ns
            .windows(2)
            .zip(layer.cpu_ns.windows(2))
            .zip(base);
        let top = windows.map(|((at_ns, cpu_ns), base)| {
            let length_ns = at_ns[1].saturating_sub(at_ns[0]) as f64 * stack.cpus;
            let used_ns = cpu_ns[1].saturating_sub(cpu_ns[0]) as f64;
            base + if length_ns > 0.0 {
                used_ns / length_ns * 100.0
            } else {
                0.0
            }
        });
        borders.push(top.collect());
    }
    borders
}

/// Where the borders between classes would lie while every class wants to run [%].
fn asked_borders(stack: &Stack) -> Vec<f64> {
    let leaves = stack.layers.iter().filter(|layer| !layer.inner);
    let sums = leaves.scan(0.0, |sum, layer| {
        *sum += layer.class.share_due() * 100.0;
        Some(*sum)
    });
    // The border above the last class is the edge of the plot.
    sums.filter(|sum| *sum < 99.9).collect()
}

/// The outline between two borders, in steps.
fn area(plot: &Plot, stack: &Stack, base: &[f64], top: &[f64]) -> String {
    let second = |i: usize| stack.at_ns[i] as f64 / 1e9;
    let mut path = plot.path();
    path.move_to(second(0), base[0]);
    for (i, top) in top.iter().enumerate() {
        path.line_to(second(i), *top).line_to(second(i + 1), *top);
    }
    for (i, base) in base.iter().enumerate().rev() {
        path.line_to(second(i + 1), *base).line_to(second(i), *base);
    }
    path.close();
    path.data().to_owned()
}
