# Aliases for those who type make; dev.py does the work and needs nothing but python3.
.DEFAULT_GOAL := help
.PHONY: help run test bench fmt lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## set up and run the demo (ARGS="--yes" answers for you)
	@python3 dev.py run $(ARGS)

test: ## set up and run every check (ARGS="tests/engine -k pause" runs only pytest)
	@python3 dev.py test $(ARGS)

bench: ## run the benchmarks
	@python3 dev.py bench $(ARGS)

fmt: ## format the code
	@python3 dev.py fmt

lock: ## choose versions anew
	@python3 dev.py lock

clean: ## remove .venv and the caches
	@python3 dev.py clean
