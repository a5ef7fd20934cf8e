# Every target below that carries a "##" comment is listed by `make`.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# nomsgpack leaves a large codec out of gin that nothing here speaks.
TAGS := nomsgpack
# CLOUDS=1 adds the adapters of aws, gcp and kubernetes, whose SDKs take minutes
# and some 4 GB of memory to compile the first time.
CLOUDS ?=
ifneq ($(CLOUDS),)
TAGS := $(TAGS),clouds
endif
# The NVML headers mark much of themselves as deprecated; that is NVIDIA's talk
# with itself.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations
# Two compilers at a time: more of them need more memory than a small machine has.
# Tests are compiled like the program, so that most is compiled once for both; only
# the race detector needs C.
GOTEST = CGO_ENABLED=$(if $(RACE),1,0) $(if $(RACE),scripts/with-empty-tmp) go test -p 2 -timeout 30m -trimpath -tags $(TAGS)

comma := ,
space := $(subst ,, )
RACE ?=
PKG ?= ./...
COUNT ?= 20
TRACE ?=
TRACES ?=
DAYS ?= 14
SEED ?= 1

.PHONY: help
help: ## list the targets
	@echo "Forewarm. Targets:"
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: bin/forewarm ## build and start everything in one process, with a simulated pool and a demo agent
	@echo "Starting bin/forewarm up --demo (stop it with Ctrl-C)"
	@bin/forewarm up --demo

.PHONY: bin/forewarm bin/forewarm-sim
bin/forewarm bin/forewarm-sim: bin/%:
	@echo "Fetching the modules of $@ (the first time only)"
	@n=$$(CGO_ENABLED=0 go list -tags $(TAGS) -deps ./cmd/$* | wc -l); \
	echo "Building $@: the first build compiles about $$n packages, about 3 minutes on 2 cores; later ones take seconds"
	@CGO_ENABLED=0 go build -p 2 -tags $(TAGS) -trimpath -o $@ ./cmd/$*

# With a C compiler it asks NVIDIA's library, which it loads when it runs; without one it asks
# nvidia-smi, as the static release builds do that run anywhere.
.PHONY: bin/forewarm-node
bin/forewarm-node:
	@CGO_ENABLED=$$(command -v $${CC:-cc} >/dev/null && echo 1 || echo 0) scripts/with-empty-tmp \
		go build -p 2 -tags $(TAGS) -trimpath -o $@ ./cmd/forewarm-node
	@$@ version

VERSION ?= dev
.PHONY: release/node
release/node: ## build bin/forewarm-node-linux-{amd64,arm64} with NVML where C compilers are, static ones beside them, and checksums (VERSION=1.2.3)
	@scripts/with-empty-tmp scripts/release-node "$(VERSION)" "$(TAGS)"

.PHONY: test
test: ## run every test that needs no service (RACE=-race for the race detector)
	$(GOTEST) $(RACE) ./...

# The suites that need the two services are behind a build tag, so that they are
# never skipped: they are run here or not compiled. What has one goroutine only
# has no races, and takes twenty times as long with the detector; the program of the agent
# is its packages, which are here; what is concurrent of the store, its users here are, and the
# store's own suite runs without the detector. Of the largest suites those tests run that are concurrent themselves.
PARTLY_CONCURRENT = ledger/verbs server worker worker/reconcile test/proof cmd/forewarm
SEQUENTIAL = core/|ledger/sqlledger$$|provisioners/(slurm|exec)$$|test/sim$$|bench/forecast|agent/(redact|backtest|predict)|node/addressfilter$$|bench/slurm|internal/archtest|cmd/forewarm-agent$$|cli(/|$$)
# A program for each key of the configuration, one after the other, shows no race and takes minutes; nor do an agent's days.
# What vet finds lint does, too.
GORACE_TEST = scripts/with-empty-tmp go test -p 2 -race -vet=off -count=1 -timeout 40m -skip '^(TestTrapNEveryKeyCounts|TestEvidenceEarnsItsSayAndLosesIt)$$' -tags $(TAGS)
.PHONY: test/race
test/race: ## run the tests of what is concurrent with the race detector, PostgreSQL and Redis included
	scripts/with-services $(GORACE_TEST),services $$(go list -tags $(TAGS) ./... | \
		grep -vE '/forewarm/($(SEQUENTIAL)|($(subst $(space),|,$(PARTLY_CONCURRENT)))$$)')
	scripts/with-services $(GORACE_TEST),services -run "$$(scripts/concurrent-tests $(PARTLY_CONCURRENT))" \
		$(addprefix ./,$(PARTLY_CONCURRENT))
	scripts/with-services env $(GOTEST),services -count=1 ./ledger/sqlledger
	$(GORACE_TEST) -run 'Signal|Wait|Busy|Restart|Follow|Stream' ./cli
	$(GORACE_TEST) -run 'TwoProcesses|TestConformance' ./provisioners/slurm
	$(GORACE_TEST) -run 'WholeGroup|IsTheLimit|Daemons' ./provisioners/exec

.PHONY: test/all
test/all: test test/race ## run every test, and those of what is concurrent with the race detector, PostgreSQL and Redis

.PHONY: test/clouds
test/clouds: ## run the tests of the adapters that are built with CLOUDS=1 (compiling their SDKs takes minutes the first time)
	$(GOTEST),clouds ./provisioners/builtin ./provisioners/aws/... ./provisioners/gcp/... ./provisioners/kubernetes/...

# slurmd needs root, the compiler does not: its cache stays its user's.
.PHONY: test/slurm
test/slurm: ## run the Slurm adapter's suite against real daemons (root or sudo, slurm-wlm, munge; some minutes)
	CGO_ENABLED=0 go test -c -trimpath -tags $(TAGS),slurm -o bin/slurm.test ./provisioners/slurm
	cd provisioners/slurm && $(if $(filter-out 0,$(shell id -u)),sudo) ../../scripts/with-slurm \
		../../bin/slurm.test -test.run Real -test.parallel 4 -test.timeout 15m
	CGO_ENABLED=0 go test -c -trimpath -tags $(TAGS),slurm -o bin/slurm-sessions.test ./cmd/forewarm
	cd cmd/forewarm && $(if $(filter-out 0,$(shell id -u)),sudo --preserve-env=PATH) ../../scripts/with-slurm \
		../../bin/slurm-sessions.test -test.run RealSlurm -test.timeout 15m

.PHONY: test/slurm/elastic
test/slurm/elastic: ## run the tests of observed pools against real daemons whose nodes boot and suspend (as test/slurm; about 8 minutes)
	CGO_ENABLED=0 go test -c -trimpath -tags $(TAGS),slurm -o bin/slurm.test ./provisioners/slurm
	cd provisioners/slurm && $(if $(filter-out 0,$(shell id -u)),sudo) env FOREWARM_SLURM_CLOUD=4 \
		FOREWARM_SLURM_BOOT=6 FOREWARM_SLURM_SUSPEND=18 FOREWARM_SLURM_RESUME=16 FOREWARM_SLURM_FORGET=60 \
		FOREWARM_SLURM_PRIVATE=cloud ../../scripts/with-slurm ../../bin/slurm.test -test.run Elastic -test.timeout 25m

.PHONY: test/slurm/accounting
test/slurm/accounting: ## run the tests of a cluster's history against a real slurmdbd (as test/slurm, with slurmdbd and mariadb-server; a minute)
	CGO_ENABLED=0 go test -c -trimpath -tags $(TAGS),slurm -o bin/slurm.test ./provisioners/slurm
	cd provisioners/slurm && $(if $(filter-out 0,$(shell id -u)),sudo) env FOREWARM_SLURM_CLOUD=2 FOREWARM_SLURM_SUSPEND=8 \
		FOREWARM_SLURM_ACCOUNTING=1 ../../scripts/with-slurm ../../bin/slurm.test -test.run AccountedBySlurmdbd -test.timeout 15m

.PHONY: test/nvml
test/nvml: ## run the tests of what asks NVIDIA's library, against a fake one (a C compiler; a minute the first time)
	CGO_ENABLED=1 scripts/with-empty-tmp go test -p 2 -tags $(TAGS) ./node/gpu ./node/burnin ./provisioners/local/discover

.PHONY: test/containers
test/containers: ## run jobs in containers of the real podman, and of docker if it is there; skipped where they cannot run (root, podman, crun, catatonit, busybox-static, docker.io; a minute)
	CGO_ENABLED=0 go test -c -trimpath -tags $(TAGS),containers -o bin/containers.test ./node/jobs
	cd node/jobs && $(if $(filter-out 0,$(shell id -u)),sudo) ../../scripts/with-containers \
		../../bin/containers.test -test.run RealContainers -test.v -test.timeout 5m

.PHONY: test/kubernetes
test/kubernetes: ## run the Kubernetes adapter's suite against a real kube-apiserver (etcd; builds it the first time, about 16 minutes)
	scripts/with-kube-apiserver env $(GOTEST),clouds,envtest -count=1 -run Real ./provisioners/kubernetes

.PHONY: lint
lint: bin/golangci-lint ## run golangci-lint (its first build takes about 3 minutes; CLOUDS=1 reads the adapters of the clouds, too)
	CGO_ENABLED=0 GOFLAGS="$${GOFLAGS:-} -trimpath" bin/golangci-lint run $(if $(CLOUDS),--build-tags $(TAGS)$(comma)services$(comma)slurm$(comma)envtest) ./...
	scripts/with-empty-tmp bin/golangci-lint run ./provisioners/local/discover # the one package with C

bin/golangci-lint: tools/go.mod tools/go.sum
	@echo "Building golangci-lint from tools/go.mod (once, about 3 minutes on 2 cores)"
	@go build -C tools -p 2 -trimpath -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: deadcode
deadcode: bin/deadcode ## list the functions that no program reaches, only tests (a minute, 5.5 GB of memory)
	scripts/check-dead-code

bin/deadcode: tools/go.mod tools/go.sum
	@go build -C tools -p 2 -trimpath -o ../$@ golang.org/x/tools/cmd/deadcode

# Gremlins shares modules with golangci-lint, of which it needs newer ones: it has a
# go.mod of its own.
bin/gremlins: tools/gremlins/go.mod tools/gremlins/go.sum
	@go build -C tools/gremlins -p 2 -trimpath -o ../../$@ github.com/go-gremlins/gremlins/cmd/gremlins

.PHONY: mutate
mutate: bin/gremlins ## plant faults in PKG, one at a time, and list those that its own tests do not notice (a second each)
	@[ "$(PKG)" != ./... ] || { echo "usage: make mutate PKG=./core/quota" >&2; exit 2; }
	@TAGS=$(TAGS) ARGS="$(ARGS)" scripts/mutate $(PKG)

.PHONY: verify
verify: ## check everything a test does not: format, vet, lint, generated files, go.mod, import rules (CLOUDS=1: of the clouds, too)
	@unformatted=$$(git ls-files -co --exclude-standard -- '*.go' | xargs -r ls -d 2>/dev/null | xargs -r gofmt -l); \
	[ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted" >&2; exit 1; }
	CGO_ENABLED=0 go vet -trimpath -tags $(TAGS) ./...
	go mod tidy -diff
	$(GOTEST) ./internal/archtest
	scripts/check-generated
	$(MAKE) --no-print-directory lint

.PHONY: gen
gen: ## write every generated file anew
	CGO_ENABLED=0 GOFLAGS="$${GOFLAGS:-} -tags=$(TAGS)" go generate ./...

.PHONY: gen/proto
gen/proto: ## write the Go code of the .proto files anew (protoc)
	scripts/generate-proto

.PHONY: replay
replay: ## replay a trace in virtual time: make replay TRACE=file.csv.gz [DAYS=14] [SEED=1] [ARGS='--policy reactive'] (a day of a busy trace takes minutes)
	@[ -n "$(TRACE)" ] || { echo "usage: make replay TRACE=file.csv.gz [DAYS=14] [SEED=1]" >&2; exit 2; }
	@$(MAKE) --no-print-directory bin/forewarm-sim
	@bin/forewarm-sim replay --trace "$(TRACE)" --days "$(DAYS)" --seed "$(SEED)" $(ARGS)

.PHONY: bench
bench: ## run the benchmarks of PKG, one package at a time
	CGO_ENABLED=0 go test -p 1 -trimpath -tags $(TAGS) -run '^$$' -bench . -benchmem $(PKG)

# Each starts what it needs: see bench/README.md. ARGS are flags of the benchmark.
ARGS ?=
BENCH = @CGO_ENABLED=0 go build -p 2 -tags $(TAGS) -trimpath -o bin/$(subst /,-,$@) ./$@ && FOREWARM_TEST_DURABLE=1 scripts/with-services bin/$(subst /,-,$@) $(ARGS)

.PHONY: bench/durable
bench/durable: ## measure durable single requests over HTTP beside two yardsticks (ARGS='-count 5')
	$(BENCH)

.PHONY: bench/batch
bench/batch: ## measure durable reservations that come in batches
	$(BENCH)

.PHONY: bench/claim
bench/claim: ## measure claims of warm reservations beside a bare transaction
	$(BENCH)

.PHONY: bench/servers
bench/servers: ## measure several servers on one pool, workers beside a server, and many pools (ARGS='-count 5')
	$(BENCH)

.PHONY: bench/history
bench/history: ## measure bookings beside the history of a year (ARGS='-events 1000000'; 10 million take minutes and 10 GB)
	$(BENCH) $(HISTORY)

.PHONY: bench/reads
bench/reads: ## measure lists, reports and the calendar beside a million ended reservations (ARGS='-ended 100000')
	$(BENCH) $(READS)

.PHONY: bench/streams
bench/streams: ## measure what 1,000 open event streams cost
	$(BENCH)

.PHONY: bench/nodes
bench/nodes: bin/forewarm-node ## measure 1,250 daemons of 8 GPUs each on one server, bookings beside them, and one daemon at rest
	$(BENCH)

# Slurm's daemons need root: see scripts/with-slurm. ARGS='-with-slurm ""' leaves them out.
.PHONY: bench/jobs
bench/jobs: bin/forewarm-node ## measure jobs from submission to result beside real Slurm daemons, their start, and submissions beside 100,000 finished ones (root)
	$(BENCH) $(JOBS)

.PHONY: bench/rest
bench/rest: bin/forewarm ## measure the processor time of an embedded installation that nobody asks for anything
	@CGO_ENABLED=0 go build -tags $(TAGS) -trimpath -o bin/bench-rest ./bench/rest && bin/bench-rest $(ARGS)

.PHONY: bench/slurm
bench/slurm: bin/forewarm ## measure waits and idling in real Slurm clusters whose nodes boot, with and without Forewarm (as test/slurm; 25 minutes)
	@CGO_ENABLED=0 go build -p 2 -tags $(TAGS) -trimpath -o bin/bench-slurm ./bench/slurm && \
		$(if $(filter-out 0,$(shell id -u)),sudo --preserve-env=FOREWARM_SLURM_ROOT) scripts/with-slurm-root bin/bench-slurm $(ARGS)

.PHONY: bench/smoke
bench/smoke: ARGS = -count 1 -duration 300ms -warmup 0s
bench/smoke: HISTORY = -events 6000
bench/smoke: READS = -ended 2000 -live 100
bench/smoke: JOBS = -jobs 20 -starts 3 -history 2000 -nodes 1 -with-slurm ""
bench/smoke: bench/durable bench/batch bench/claim bench/servers bench/history bench/reads bench/streams bench/jobs bench/smoke/core ## run those of the running program for a moment: do they still count what they book? (their figures say nothing)

.PHONY: bench/admission
bench/admission: ## measure decisions of core/admission with 10,000 and 100,000 bookings
	@CGO_ENABLED=0 go build -tags $(TAGS) -trimpath -o bin/bench-admission ./bench/admission && bin/bench-admission $(ARGS)

.PHONY: bench/plan
bench/plan: ## measure one run of the planner over 1,250 nodes, in memory
	@CGO_ENABLED=0 go build -p 2 -tags $(TAGS) -trimpath -o bin/bench-plan ./bench/plan && bin/bench-plan $(ARGS)

.PHONY: bench/queue
bench/queue: ## measure the bounded priority queue on one thread, in memory
	@CGO_ENABLED=0 go build -tags $(TAGS) -trimpath -o bin/bench-queue ./bench/queue && bin/bench-queue $(ARGS)

.PHONY: bench/schedule
bench/schedule: ## measure cycles of the scheduler over 10,000 and 100,000 waiting jobs, in memory
	@CGO_ENABLED=0 go build -tags $(TAGS) -trimpath -o bin/bench-schedule ./bench/schedule && bin/bench-schedule $(ARGS)

.PHONY: bench/jobtraces
bench/jobtraces: ## play TRACE=file or TRACES=folder on clusters that make a queue, under the scheduler's and others' policies
	@CGO_ENABLED=0 go build -tags $(TAGS) -trimpath -o bin/bench-jobtraces ./bench/jobtraces && bin/bench-jobtraces -traces "$(TRACE),$(TRACES)" $(ARGS)

# The three of the scheduling core need no service, and have flags of their own.
.PHONY: bench/smoke/core
bench/smoke/core:
	@$(MAKE) --no-print-directory bench/queue ARGS='-count 1 -duration 100ms'
	@$(MAKE) --no-print-directory bench/schedule ARGS='-count 1 -scale 20 -changes 20'
	@$(MAKE) --no-print-directory bench/jobtraces ARGS='-drawn -use 95' TRACE= TRACES=

.PHONY: bench/forecast
bench/forecast: ## replay TRACE=file or TRACES=folder against every policy (ARGS='-boot 120,300,600')
	@CGO_ENABLED=0 go build -p 2 -tags $(TAGS) -trimpath -o bin/bench-forecast ./bench/forecast && bin/bench-forecast -traces "$(TRACE),$(TRACES)" $(ARGS)

# The program needs the kind aws, so it is built with the clouds, like test/clouds.
CHAOS_MINUTES ?= 10
CHAOS_SEED ?= 0
.PHONY: chaos
chaos: ## break everything for 10 minutes and count what was lost, doubled, orphaned, billed wrongly or not cleaned (CHAOS_MINUTES=n, CHAOS_SEED=n)
	@echo "Building bin/forewarm-clouds (compiling the SDKs takes minutes the first time)"
	@CGO_ENABLED=0 go build -p 2 -tags $(TAGS),clouds -trimpath -o bin/forewarm-clouds ./cmd/forewarm
	@CGO_ENABLED=0 go build -p 2 -tags $(TAGS) -trimpath -o bin/forewarm-node-static ./cmd/forewarm-node
	@CGO_ENABLED=0 go build -p 2 -tags $(TAGS) -trimpath -o bin/bench-chaos ./test/chaos
	@bin/bench-chaos -binary bin/forewarm-clouds -node-binary bin/forewarm-node-static -minutes $(CHAOS_MINUTES) -seed $(CHAOS_SEED) $(ARGS)

.PHONY: prior
prior: ## learn the forecaster's built-in prior anew from TRACES=folder (two rounds, the largest first)
	@CGO_ENABLED=0 go build -p 2 -tags $(TAGS) -trimpath -o bin/bench-forecast ./bench/forecast && bin/bench-forecast -traces "$(TRACE),$(TRACES)" -learn-prior core/forecast/prior.bin

.PHONY: deps
deps: ## fetch every module and tool that the targets need, and check their hashes
	go mod download
	go mod verify
	go mod download -C tools
	go mod download -C tools/gremlins

.PHONY: deflake
deflake: ## run the tests of PKG many times, shuffled, to find those that sometimes fail (COUNT=20)
	scripts/with-empty-tmp go test -p 2 -tags $(TAGS) -race -shuffle=on -count=$(COUNT) $(PKG)

.PHONY: clean
clean: ## remove what the targets built; data in the home directory stays
	rm -rf bin
