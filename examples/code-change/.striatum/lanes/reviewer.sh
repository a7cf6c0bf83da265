# Looks at the change as a patch, and at the file as it would be.
set -eu
cat "$STRIATUM_SCRATCH/inputs/draft/change.patch"
languages=$(sed -n 's/^    \([a-z][a-z]\)).*/\1/p' greet.sh)
if [ "$languages" != "$(printf '%s\n' "$languages" | sort)" ]; then
    striatum work verdict needs_revision --finding "not in order: $(printf '%s ' $languages)"
else
    striatum work verdict accept --summary 'one line more, in its place'
fi
