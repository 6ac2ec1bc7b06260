# ARGS goes to the program, or to the test runner: make run ARGS="--listen 127.0.0.1:9000".

# A shell that was opened before rustup ran does not have cargo in its PATH yet. Homebrew keeps pg_config, which tells
# the build where libpq is, out of it. Both come last, so that whatever PATH already has wins.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin:/opt/homebrew/opt/libpq/bin:/usr/local/opt/libpq/bin

.DEFAULT_GOAL := help
.PHONY: help run test sdks check db bench clean

help: ## lists these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' Makefile

run: ## builds a release and serves; ARGS goes to oncepay
	@scripts/setup run
	cargo run --release --locked -- $(ARGS)

test: sdks ## runs every test; ARGS goes to cargo test
	cargo test $(ARGS)

sdks: ## installs the official SDKs, which the tests need, into target
	@scripts/setup test
	@scripts/sdks

# The tests are not repeated here, because whoever runs both (.ci/run, for one) would wait for them twice. Clippy goes
# over the crate twice: the first time as the tests see it, with their features, and then as it is released.
# --locked makes a Cargo.lock that lags behind Cargo.toml a failure too.
check: ## rustfmt, clippy and rustdoc, each warning an error; the tests are apart: make test
	@scripts/setup check
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps

db: ## opens psql on the private database in .oncepay; ARGS goes to psql
	@scripts/setup db
	@cargo run --quiet --release --locked -- psql $(ARGS)

bench: ## measures, and prints the figures; ARGS goes to bench/run
	@scripts/setup bench
	bench/run $(ARGS)

clean: ## removes what was built; the data in .oncepay stays
	cargo clean
