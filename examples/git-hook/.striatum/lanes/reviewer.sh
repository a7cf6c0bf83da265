# The reviewer sees the run's newest state in a tree of its own.
set -eu
line=$(tail -n 1 CHANGES.md)
if [ "${#line}" -gt 4 ]; then
  striatum work verdict accept
else
  striatum work verdict needs_revision --finding "line: it says nothing"
fi
