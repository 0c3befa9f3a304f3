# Each target sets up what it needs: a virtual environment in .venv, Java where Spark is started, a Kafka broker's jars,
# a browser for the tests of the page.

bin := .venv/bin
stamp := .venv/installed
java := scripts/with-java.sh
broker := build/kafka/classes.jsa
unexport PYTHONDONTWRITEBYTECODE # Python is started again and again here, and would compile everything each time

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup browser demo test test-fast test-s3 test-peers cluster page-memory soak mass simulate fuzz bounds check format docs wheel check-deploy bench bench-peers constraints clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r target text; do printf 'make %-13s%s\n' "$$target" "$$text"; done

setup: $(stamp) ## make the virtual environment in .venv and install everything into it

$(stamp): pyproject.toml constraints.txt scripts/venv.sh
	@scripts/venv.sh .venv --constraint constraints.txt
	@touch $@

$(broker): scripts/kafka.sh
	@scripts/kafka.sh jars

browser: # for the tests of the page, which say so where there is none
	@scripts/chromium.sh >/dev/null || true

demo: $(stamp) ## show the main job at work
	@$(java) $(bin)/anabranch demo

test: $(stamp) $(broker) browser ## run all tests, and of those with very many cases four minutes
	@$(java) $(bin)/pytest -n 2 --dist worksteal

test-fast: $(stamp) ## run the tests that need neither Java nor a service, but for those with very many cases, and of random cases a part
	@$(bin)/pytest -n 2 --dist worksteal -m 'not spark and not service and not mass'

test-s3: $(stamp) ## run the tests that need a real S3 server, which Go builds the first time
	@$(java) $(bin)/pytest -m s3

test-peers: $(stamp) ## run the tests of the peers that we are measured beside, which Maven fetches; some need a JDK of 21 or newer
	@$(java) $(bin)/pytest -m peers

cluster: $(stamp) $(broker) ## as root: a site on machines that share no disk, with S3 and Kafka between them, while some are lost
	@$(java) $(bin)/python tests/cluster/run.py

page-memory: $(stamp) browser ## watch the memory of the page for an hour, with all its views open
	@$(java) $(bin)/python tests/browser/hour.py

soak: $(stamp) ## an hour, or ANABRANCH_SOAK_MINUTES, of a site and a network under load and faults; all they hold stays flat
	@$(java) $(bin)/python tests/soak/run.py

mass: $(stamp) $(broker) browser ## run the tests with very many cases whole, however long it takes; one of them kills a run 200 times; fuzz for a minute
	@ANABRANCH_MASS=whole $(java) $(bin)/pytest -n 2 --dist worksteal -m 'mass or kills' -o faulthandler_timeout=7200
	@$(bin)/python tests/fuzzing/run.py --seconds 60

simulate: $(stamp) ## run 10,000 seeds of the simulated world, or ANABRANCH_SEEDS=N of them; seed=N runs that one again
	@$(bin)/python tests/simulation/run.py $(if $(seed),--seed $(seed))

seconds := 3600
fuzz: $(stamp) ## fuzz what reads bytes, with coverage, for an hour; make fuzz seconds=60 targets='"a query" "lines of JSON"'
	@$(bin)/python tests/fuzzing/run.py --seconds $(seconds) $(targets)

bounds: $(stamp) ## run the tests of columns with compiled loops that check their bounds
	@NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/bounds $(bin)/pytest tests/columnar -m 'not kills'

check: $(stamp) ## lint, formatting, types, the rule that imports go downwards, and the order of the house
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy
	$(bin)/lint-imports
	$(bin)/python scripts/house.py

format: $(stamp) ## put the code into its one format
	$(bin)/ruff check --fix
	$(bin)/ruff format

docs: $(stamp) ## build the documentation as a site, in build/site
	@$(bin)/python scripts/docs.py build/site

wheel: $(stamp) ## build the wheel, in build/wheel
	@rm -rf build/lib build/bdist.* build/wheel
	@$(bin)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheel .
	@ls build/wheel/*.whl

check-deploy: wheel ## as root on Debian: run the steps of the Dockerfile in a root of its own, and its service; verify the unit
	@$(bin)/python scripts/check_deploy.py

bench: $(stamp) ## measure: starting, parsing, items that come in, forms of queries, windows, joins, many subscriptions, latency, evolution, history, a network, flat memory
	@$(java) $(bin)/anabranch bench start
	@$(bin)/anabranch bench parse
	@for name in ingest forms windows joins sharing latency evolution history memory; do $(java) $(bin)/anabranch bench $$name || exit; done
	@$(java) $(bin)/anabranch bench network --svg docs/images/network.svg

bench-peers: $(stamp) ## measure beside others, which come by Maven: Event Ruler, Lucene Monitor, OpenSearch, Esper, Flink
	@$(java) $(bin)/anabranch bench peers --markdown build/peers.md

constraints: ## renew the pinned versions in constraints.txt
	@scripts/constraints.sh

clean: ## remove everything that make has made
	rm -rf .venv build demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache src/*.egg-info
	find src tests -name __pycache__ -prune -exec rm -rf {} +
