# The stages of .ci/run by name: `just fast`.

# Everything that decides what lands
all:
    .ci/run

# Formatting, lints, unit tests and playbooks
fast:
    .ci/run fast

# The README's commands, end-to-end tests, fuzz targets, dependencies
e2e:
    .ci/run e2e

# Real peers, the terminal, exports, the control API, official suites
peers:
    .ci/run peers
