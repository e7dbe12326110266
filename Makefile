# SPDX-License-Identifier: GPL-2.0
# Thin verbs; the work is done by cargo, core/Makefile and the binaries andante and andante-lab.
#
#   make            build target/release/andante and andante-lab
#   make demo       install what is missing, build, and show a film kept smooth on a real kernel
#   make check      after a small change, in under two minutes: formats, core, shell, a sweep
#   make test       everything that is checked: style, core, crates, and the real kernel
#   make install    puts it where the system looks for it, PREFIX=/usr/local DESTDIR=; make uninstall
#   make deb        packages for Debian and Ubuntu: target/deb
#   make papers     published experiments, run again: out/papers/book.html
#   make bench      costs, side by side with the stock scheduler
#   make figures    the figures that the documentation quotes, measured anew (hours), ONLY=NAME,NAME
#   make docs       the documentation as a book, into target/book (mdbook)
#   make costs      what callbacks and the kernel cost, measured anew for the simulator: crates/sim/costs.toml
#   make race       random interleavings of the scheduler's callbacks, SEEDS=20 STEPS=200000
#   make faults     undo mended faults one after the other, and see that each is found: crates/sim/faults;
#                   ONLY=NAME,NAME
#   make soak       an hour of stress on eight CPUs, in virtual time and truly in parallel, MINUTES=60
#   make attack     an unprivileged user's worst, and what others still get, beside the stock scheduler
#   make matrix     load, shares, a contract, a session, events and a kill on one kernel after the other, VERSIONS="6.18 7.2.13/8"
#   make fuzz       libFuzzer, SECONDS=60 on each target, one after the other; TARGETS="daemon config"
#                   for some of those in crates/fuzz alone

ANDANTE := target/release/andante
CARGO   := cargo
COMPILE  = $(CARGO) build --release --locked
SECONDS := 60
# One test on the kernel, and some of the figures; all, if none is named.
TEST    :=
ONLY    :=

# Scenarios that make test runs, each in a virtual machine at a time, two of them at once: those that take
# longest first, so that both CPUs are busy to the end. Every one judges itself by its own expectations, under
# Andante alone if nothing else is named. Of some the outermost cases, and one between; make bench runs all.
SCENARIOS := desktop-real stress desktop domains qlinux-5-depth pingpong desktop-late film-make contract-soft \
             film-loops distributed desktop-films disk link router link-tools stream memory memory-mpv kato-2-memory qlinux-4-web qlinux-3-film desktop-scripts learnt-imitators starving desktop-others affinity \
             contract-cost quota idle policies game ecalls shares-smp wakeup qlinux-1-weights contract-windows shares qlinux-2-suspend
under_pingpong       := andante,eevdf
under_qlinux-5-depth := andante,eevdf
under_idle           := andante,eevdf
under_ecalls         := andante-dwcs
# The kernel's own schedulers of requests are what it shows.
under_disk           := stock
with_ecalls          := --case overload-without,overload-with --set 'duration_s = 10'
with_disk            := --case none,bfq-weights,cello
with_link            := --case udp,tcp,promise
with_link-tools      := --case own
with_router          := --case udp,tcp
with_qlinux-4-web    := --case link-2-1
with_stream          := --case beside
with_memory          := --case reserved-read-first
with_memory-mpv      := --case reserved
with_kato-2-memory   := --case reserved
with_quota           := --case fifth-beside,nested
with_idle            := --case class,task
with_domains         := --case two-of-two,bound
# A fifth of the second that make bench measures: 12,000 round trips, whose mean is exact in virtual time.
with_pingpong        := --set 'duration_s = 0.2'
# And four periods of its contracts here.
with_contract-cost   := --set 'duration_s = 0.4'
# Shares are right from the first second on; on four CPUs each takes three of the host's.
with_shares-smp      := --set 'duration_s = 10'
with_affinity        := --set 'duration_s = 10'
# The film has ended by 15.5 s; what the build does beyond that is of no interest here. Started with it is bench's.
with_desktop-real    := --case later --set 'duration_s = 16'
# make soak does it for an hour.
with_stress          := --set 'duration_s = 15'
# Beside the build alone it is compared in make bench.
with_film-make       := --case film
with_distributed     := --case plain-udp,session-tcp,promise-udp
with_qlinux-5-depth  := --case depth-1,depth-16
with_qlinux-3-film   := --case dhrystones-1,dhrystones-4,dhrystones-8
# Beside 128 jobs, on four CPUs.
with_desktop-others  := --case many-jobs --set 'cpus = 4' --set 'work_scale = 0.25'
# These must not depend on the image or the evening: they run under a few perturbations here, and in the simulator
# under hundreds. Of sound its first seconds, when nothing has been learnt yet.
PERTURBED         := audio desktop
with_audio        := --perturb 1 --set 'duration_s = 5'
perturbed_desktop := --perturb 2 --case batch-8
PERTURBED_ON_SIM  := desktop desktop-late sound learnt-imitators
ALONE_ON_SIM      := contract-sets contract-isolation contract-desktop contract-soft contract-windows policies game
# Under plain DWCS.
DWCS_ON_SIM       := event-sets ecalls
# Those that the simulator can run are run there too, and must come out alike (crates/judge/src/against.rs). Left
# out: two films of 60 frames of desktop-films, where a race of some microseconds decides on the latest key, which
# a kernel wins or loses by its phase; and what programs that fork get done on several CPUs (desktop-others, and
# forks of domains), 4 to 6 % off for a cause that has not been measured; and policies, where
# under svr4-ts a key waits for seconds in some phases, as Nieh found: its own bounds are judged there.
SIMULATED := shares wakeup qlinux-1-weights qlinux-2-suspend contract-windows contract-soft desktop desktop-late \
             learnt-imitators
# What needs no kernel beside: make check, and make test.
QUOTAS_ON_SIM := quota idle
SIMULATED_FILMS   := desktop-films --case four-of-24
SIMULATED_DOMAINS := domains $(with_domains)
SIMULATE  := $(ANDANTE) lab run --on sim --scheduler andante --against out --out out/sim

# Runs a part, and keeps what it took: dist/timed.sh.
TIMES := target/times
TIMED  = dist/timed.sh $(TIMES)
SUMMED = status=$$?; dist/timed.sh $(TIMES); exit $$status
# At once: as many as a small machine has CPUs, and each virtual machine takes one.
LANES := 2

.PHONY: all build install uninstall deb demo check test test-setup lint format-check core-test race faults unit-test kernel-test scenarios \
        package-test perturbed perturbed-on-sim crowds agreement papers bench soak attack matrix figures figures-check docs costs fuzz fuzz-build clean
all: build

build:
	$(COMPILE)

# Root installs what somebody has built, and builds nothing.
install uninstall:
	$(MAKE) -s -C dist $@

deb:
	dist/setup.sh deb
	$(COMPILE)
	$(COMPILE) -p libandante -p andante-bus
	$(MAKE) -s -C dist deb

demo:
	dist/setup.sh run
	$(COMPILE)
	$(ANDANTE) lab run --scheduler andante,stock --case later desktop-real
	$(ANDANTE) lab run --scheduler andante,eevdf,stock film-loops
	@echo "demo: nothing configured:  out/desktop-real/report.html"
	@echo "      with weights:        out/film-loops/report.html"
	@echo "      why a frame dropped: $(ANDANTE) why out/desktop-real --scheduler stock"

# The parts of `make check`. The binary is compiled quickly, see the file.
QUICK    := --config .cargo/quick.toml
FAMILIES := desktop sound games batch systemd keys links

check:
	@rm -rf $(TIMES)
	@$(MAKE) -s -j$(LANES) check-formats check-core check-shell check-sweep check-kernel-tests; $(SUMMED)

.PHONY: check-formats check-core check-shell check-build check-sweep check-kernel-tests
check-formats:
	@$(TIMED) formats $(MAKE) -s format-check
check-core:
	@$(TIMED) core $(MAKE) -s -C core quick
check-shell:
	@$(TIMED) shell $(MAKE) -s race SEEDS=4 STEPS=100000
check-build:
	@$(TIMED) build $(CARGO) build -q --release --locked $(QUICK) -p andante -p andante-lab
check-kernel-tests: check-build
	@$(TIMED) kernel-tests $(CARGO) test -q --release --locked $(QUICK) -p andante-sim --test kernel --test contracts
check-sweep: check-build
	@$(TIMED) sweep $(ANDANTE) lab sweep $(FAMILIES) --scheduler andante,eevdf-fifo --brief --out out/check
	@$(TIMED) perturbed $(ANDANTE) lab run desktop --on sim --perturb 50 --scheduler andante --out out/check --json >out/check/perturbed.json

# Parts that need nothing of each other run side by side, two at a time; what each took is told at the end.
test: test-setup
	@rm -rf $(TIMES)
	@$(MAKE) -s -j$(LANES) $(PARTS:%=part-%); $(SUMMED)
	@echo "make test: all passed"

# In the order in which they begin, as far as what they need is there.
VM_PARTS := kernel-test package-test $(PERTURBED:%=perturbed-%) $(SCENARIOS:%=vm-%)
PARTS    := lint core-test race build figures-check $(VM_PARTS) unit-test perturbed-on-sim crowds papers agreement
OF_BUILD := figures-check $(VM_PARTS) unit-test perturbed-on-sim crowds papers agreement
.PHONY: test-build $(PARTS:%=part-%)

part-build:
	@$(TIMED) build $(MAKE) -s test-build
# By then it has been built, with the tests' features: without them most of it would be compiled anew.
BUILT := COMPILE=true
part-race:
	@$(TIMED) race $(MAKE) -s race SEEDS=4
part-lint part-core-test part-figures-check part-unit-test part-perturbed-on-sim part-crowds part-papers: part-%:
	@$(TIMED) $* $(MAKE) -s $* $(BUILT)
part-kernel-test part-package-test: part-%:
	@$(TIMED) $* $(MAKE) -s $* $(BUILT) MACHINES=1
$(SCENARIOS:%=part-vm-%): part-vm-%:
	@$(TIMED) vm-$* $(RUN_ONE)
$(PERTURBED:%=part-perturbed-%): part-perturbed-%:
	@$(TIMED) perturbed-$* $(RUN_PERTURBED)
part-agreement: $(SCENARIOS:%=part-vm-%)
	@$(TIMED) agreement $(MAKE) -s agree
# Cargo does one thing at a time.
part-build: part-lint
$(OF_BUILD:%=part-%): part-build

# The tests' own libraries change features of ours, so that cargo would compile most of them twice: the
# binary is made with them, once. A library that others link against is no part of any test, but of a package.
test-build: COMPILE := $(CARGO) test --release --locked --workspace --no-run
test-build: build
	$(CARGO) build --release --locked -p libandante

test-setup:
	dist/setup.sh test

lint: format-check
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings

format-check:
	$(CARGO) fmt --all --check
	$(MAKE) -s -C core format-check

core-test:
	$(MAKE) -s -O -C core test

# The scheduler's shell on the model of the kernel, natively: any CPU at any time (crates/sim/kernel/race.c).
race:
	$(MAKE) -s -C crates/sim/kernel test race $(if $(SEEDS),SEEDS=$(SEEDS)) $(if $(STEPS),STEPS=$(STEPS))

# Minutes; the simulator must be built, and is not built again.
faults:
	crates/sim/faults/run.py --andante $(ANDANTE) $(if $(ONLY),--only $(ONLY))

unit-test:
	$(CARGO) test --release --locked --workspace

# The virtual machine: so many at a time, each on a CPU of its own. The whole workspace, as in unit-test:
# of a part of it all would be compiled anew.
MACHINES := 2
kernel-test: build
	$(CARGO) test --release --locked --workspace --lib --test kernel --test net --test memory --test disk --test receive --test saved -- --ignored --test-threads=$(MACHINES) $(TEST)

# What make deb has made, installed in a whole system in the virtual machine.
package-test: deb
	$(CARGO) test --release --locked --workspace --test system -- --ignored --test-threads=$(MACHINES) $(TEST)

RUN_ONE       = $(ANDANTE) lab run $* --machines 1 --scheduler $(or $(under_$*),andante) $(with_$*)
RUN_PERTURBED = $(ANDANTE) lab run $* --machines 1 --scheduler andante $(or $(perturbed_$*),$(with_$*)) --out out/perturbed

scenarios: build
	@rm -rf $(TIMES)
	@$(MAKE) -s -j$(LANES) $(SCENARIOS:%=vm-%); $(SUMMED)

# One scenario as make test runs it: make vm-desktop.
vm-%: build
	@$(TIMED) vm-$* $(RUN_ONE)

perturbed: build
	@$(MAKE) -s -j$(LANES) $(PERTURBED:%=perturbed-%) perturbed-on-sim
perturbed-%: build
	@$(TIMED) perturbed-$* $(RUN_PERTURBED)

perturbed-on-sim: build
	$(ANDANTE) lab run --on sim --scheduler andante --out out/perturbed-on-sim $(QUOTAS_ON_SIM)
	$(ANDANTE) lab run --on sim --perturb 200 --scheduler andante,eevdf-fifo --out out/perturbed-on-sim $(PERTURBED_ON_SIM)
	$(ANDANTE) lab run --on sim --perturb 50 --scheduler andante --out out/perturbed-on-sim $(ALONE_ON_SIM)
	$(ANDANTE) lab run --on sim --perturb 20 --scheduler andante-dwcs --out out/perturbed-on-sim $(DWCS_ON_SIM)
	$(ANDANTE) lab run --on sim --perturb 400 --scheduler andante --out out/perturbed-on-sim domains-bound

# Ten virtual minutes of up to ten thousand busy threads, on one CPU and on several, and a desktop among five
# thousand that sleep.
crowds: build
	$(ANDANTE) lab run --on sim --scheduler andante --out out/crowds crowds
	$(ANDANTE) lab run --on sim --scheduler andante,eevdf-fifo --out out/crowds sleepers

agreement: scenarios agree

.PHONY: agree
agree:
	$(SIMULATE) $(SIMULATED)
	$(SIMULATE) shares-smp $(with_shares-smp)
	$(SIMULATE) affinity $(with_affinity)
	$(SIMULATE) contract-cost $(with_contract-cost)
	$(SIMULATE) $(SIMULATED_FILMS)
	$(SIMULATE) $(SIMULATED_DOMAINS)
	$(SIMULATE) qlinux-3-film $(with_qlinux-3-film)
	$(SIMULATE) qlinux-5-depth $(with_qlinux-5-depth)
	$(SIMULATE) link --case udp,promise
	$(SIMULATE) router --case udp

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

# The pages of docs/ as a book. Its tests (crates/cli/src/documentation) need no mdbook.
docs:
	@command -v mdbook >/dev/null || { echo "docs: mdbook is not installed: cargo install --locked mdbook" >&2; exit 1; }
	mdbook build docs
	@echo "docs: target/book/index.html"

# A part of the simulator: build again after it.
costs: build
	$(ANDANTE) lab costs --out crates/sim/costs.toml

MINUTES  := 60
VERSIONS :=
soak: build
	dist/soak.sh $(ANDANTE) $(MINUTES) out/soak

attack: build
	$(ANDANTE) lab run --brief --scheduler andante,eevdf attack --out out/attack

matrix: build
	dist/matrix.sh $(ANDANTE) out/matrix $(VERSIONS)

# Those of the core, the search for races, then those of crates/fuzz. The flags are those of stable Rust that
# libFuzzer is told of coverage by; only what is built for a target named by itself is compiled with them, build
# scripts are not. libFuzzer is clang's, where its runtime is installed; else libfuzzer-sys compiles its own.
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
	$(if $(filter file,$(origin TARGETS)),$(MAKE) -s -C crates/sim/kernel fuzz SECONDS=$(SECONDS))
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
	rm -rf --one-file-system out
