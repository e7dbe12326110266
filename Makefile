# SPDX-License-Identifier: GPL-2.0
# Thin verbs; the work is done by cargo, core/Makefile and the andante binary.
#
#   make            build target/release/andante
#   make demo       install what is missing, build, and show a film kept smooth on a real kernel
#   make test       everything that is checked: style, core, crates, and the real kernel
#   make papers     published experiments, run again: out/papers/book.html
#   make bench      costs, side by side with the stock scheduler
#   make figures    the figures that the documentation quotes, measured anew (hours), ONLY=NAME,NAME
#   make costs      what callbacks and the kernel cost, measured anew for the simulator: crates/sim/costs.toml
#   make race       random interleavings of the scheduler's callbacks, SEEDS=20 STEPS=200000
#   make faults     undo mended faults one after the other, and see that each is found: crates/sim/faults;
#                   ONLY=NAME,NAME
#   make soak       ten virtual minutes of stress on four CPUs (half an hour or more)
#   make fuzz       libFuzzer, SECONDS=60 on each target, one after the other; TARGETS="daemon config"
#                   for some of those in crates/fuzz alone

ANDANTE := target/release/andante
CARGO   := cargo
COMPILE  = $(CARGO) build --release --locked
SECONDS := 60
# One test on the kernel, and some of the figures; all, if none is named.
TEST    :=
ONLY    :=

# Scenarios that make test runs, in two queues; every one judges itself by its own expectations. Those of
# COMPARED, and DEPTH, compare with the stock scheduler, the others need Andante alone. Of FILM and DEPTH the
# outermost cases, and one between; make bench runs all.
ALONE     := shares shares-smp affinity starving film-make film-loops desktop-real wakeup qlinux-2-suspend stress
ALONE_TOO := qlinux-1-weights contract-windows contract-cost contract-soft
FILM      := qlinux-3-film --case dhrystones-1,dhrystones-4,dhrystones-8
COMPARED  := pingpong
DEPTH     := qlinux-5-depth --case depth-1,depth-16
# What those get who configure nothing: beside 128 jobs, too; of sound its first seconds, when nothing
# has been learnt yet.
DEFAULT   := desktop desktop-films desktop-late desktop-scripts learnt-imitators
MANY      := desktop-others --case many-jobs --set 'cpus = 4' --set 'work_scale = 0.25'
BRIEFLY   := audio --set 'duration_s = 10'
# Those that the simulator can run are run there too; shares and frame rates must be the same.
SIMULATED := shares shares-smp affinity wakeup qlinux-1-weights qlinux-2-suspend
SIMULATE  := $(ANDANTE) lab run --on sim --scheduler andante --against out --out out/sim

.PHONY: all build demo test test-setup lint core-test race faults unit-test kernel-test scenarios \
        scenarios-alone scenarios-compared agreement papers bench soak \
        figures figures-check costs fuzz fuzz-build clean
all: build

build:
	$(COMPILE)

demo:
	dist/setup.sh run
	$(COMPILE)
	$(ANDANTE) lab run --scheduler andante,eevdf,stock film-make film-loops

# The tests' own libraries change features of ours, so that cargo would compile most of them twice: the
# binary is made with them, once.
test: COMPILE := $(CARGO) test --release --locked --workspace --no-run
test: test-setup lint build figures-check core-test unit-test kernel-test scenarios agreement papers
	@echo "make test: all passed"

test-setup:
	dist/setup.sh test

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings
	$(MAKE) -s -C core format-check

core-test:
	$(MAKE) -s -j2 -O -C core test

# The scheduler's shell on the model of the kernel, natively: any CPU at any time (crates/sim/kernel/race.c).
race:
	$(MAKE) -s -C crates/sim/kernel race $(if $(SEEDS),SEEDS=$(SEEDS)) $(if $(STEPS),STEPS=$(STEPS))

# Minutes; the simulator must be built, and is not built again.
faults:
	crates/sim/faults/run.py --andante $(ANDANTE) $(if $(ONLY),--only $(ONLY))

unit-test:
	$(CARGO) test --release --locked --workspace

# The virtual machine: two at a time, each on a CPU of its own. The whole workspace, as in unit-test:
# of a part of it all would be compiled anew.
kernel-test: build
	$(CARGO) test --release --locked --workspace --lib --test kernel -- --ignored --test-threads=2 $(TEST)

# A scenario of one case keeps one CPU of this machine busy, so they are run in two queues.
scenarios: build
	$(MAKE) -s -j2 scenarios-alone scenarios-compared

scenarios-alone:
	$(ANDANTE) lab run --scheduler andante $(ALONE)

scenarios-compared:
	$(ANDANTE) lab run --scheduler andante $(ALONE_TOO)
	$(ANDANTE) lab run --scheduler andante $(DEFAULT)
	$(ANDANTE) lab run --scheduler andante $(MANY)
	$(ANDANTE) lab run --scheduler andante $(BRIEFLY)
	$(ANDANTE) lab run --scheduler andante $(FILM)
	$(ANDANTE) lab run --scheduler andante,eevdf $(COMPARED)
	$(ANDANTE) lab run --scheduler andante,eevdf $(DEPTH)

agreement: scenarios
	$(SIMULATE) $(SIMULATED)
	$(SIMULATE) $(FILM)
	$(SIMULATE) $(DEPTH)

# Published experiments in the simulator; figures that deviate without a reason fail.
papers: build
	$(ANDANTE) paper all --report

bench: build
	$(MAKE) -s -C core bench
	$(CARGO) bench --locked -p andante-sim
	crates/sim/benches/simso/compare.sh
	$(ANDANTE) lab run pingpong qlinux-3-film qlinux-5-depth wakeup

# Measured in the virtual machine, as many at once as there are CPUs. What fails its own bounds is not
# recorded. That an object or a figure has changed is no failure of a test: only a page that says something
# else than docs/figures.json is.
figures: build
	$(ANDANTE) lab figures $(if $(ONLY),--only $(ONLY))

figures-check: build
	$(ANDANTE) lab figures --check

# A part of the simulator: build again after it.
costs: build
	$(ANDANTE) lab costs --out crates/sim/costs.toml

soak: build
	$(ANDANTE) lab run --scheduler andante stress --set 'duration_s = 600'

# Those of the core, then those of crates/fuzz. The flags are those of stable Rust that libFuzzer is told
# of coverage by; only what is built for a target named by itself is compiled with them, build scripts
# are not. libFuzzer is clang's, where its runtime is installed; else libfuzzer-sys compiles its own.
HOST      = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_BIN  = target/fuzz/$(HOST)/release/andante-fuzz
TARGETS  := daemon scenario paper admission config
COVERAGE := -C passes=sancov-module -C debug-assertions -C overflow-checks \
	-C llvm-args=-sanitizer-coverage-level=4 -C llvm-args=-sanitizer-coverage-trace-compares \
	-C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table
CLANG     = $(firstword $(foreach c,clang-19 clang-20 clang-21 clang-22 clang,$(shell command -v $(c))))
LIBFUZZER = $(if $(CLANG),$(firstword $(wildcard $(shell $(CLANG) --print-runtime-dir)/libclang_rt.fuzzer.a \
	$(shell $(CLANG) --print-resource-dir)/lib/linux/libclang_rt.fuzzer-$(shell uname -m).a)))
# Files that targets begin with besides those in crates/fuzz/inputs.
SEEDS_scenario := scenarios
SEEDS_paper    := papers
SEEDS_config   := dist

fuzz: fuzz-build
	$(if $(filter file,$(origin TARGETS)),$(MAKE) -s -C core fuzz SECONDS=$(SECONDS))
	@$(foreach t,$(TARGETS),ANDANTE_FUZZ=$t core/fuzz/run.sh $t $(SECONDS) target/fuzz/corpus/$t \
		"ANDANTE_FUZZ=$t $(FUZZ_BIN)" $(FUZZ_BIN) -max_len=16384 \
		$(wildcard crates/fuzz/inputs/$t) $(SEEDS_$t) &&) true

fuzz-build:
	@echo "building the fuzz targets with coverage: some minutes the first time"
	@RUSTFLAGS="$(COVERAGE)" $(if $(LIBFUZZER),CUSTOM_LIBFUZZER_PATH=$(LIBFUZZER) \
		CUSTOM_LIBFUZZER_STD_CXX=stdc++) CARGO_PROFILE_RELEASE_DEBUG=0 \
		$(CARGO) build -q --release --locked -p andante-fuzz --features libfuzzer \
		--target $(HOST) --target-dir target/fuzz

clean:
	$(CARGO) clean
	rm -rf out
