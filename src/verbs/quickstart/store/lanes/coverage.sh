# A reviewer. Holds the map's rows against the files that git tracks, one by one, both ways.
set -eu
LC_ALL=C
export LC_ALL GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
repository=$(dirname "$STRIATUM_DIR")
map=$STRIATUM_SCRATCH/inputs/draft/map

git -C "$repository" ls-files -- . ':!.striatum' | sort > tracked.txt
sed -n 's/^| \([^ ]*\) | [0-9]* | .*/\1/p' "$map" | sort > mapped.txt

verdict=accept
set --
for file in $(comm -23 tracked.txt mapped.txt); do
    verdict=needs_revision
    set -- "$@" --finding "no row for: $file"
done
for file in $(comm -13 tracked.txt mapped.txt); do
    verdict=needs_revision
    set -- "$@" --finding "no such file: $file"
done

# What the author can't mend, because it is not the map's fault, is told once the map is complete.
if [ "$verdict" = accept ]; then
    for file in $(sed -n 's/^| \([^ ]*\) | [0-9]* |  |$/\1/p' "$map"); do
        verdict=accept_with_findings
        set -- "$@" --finding "does not say what it is: $file"
    done
fi

{
    printf 'Coverage: %d tracked files, %d rows.\n' "$(awk 'END { print NR }' tracked.txt)" "$(awk 'END { print NR }' mapped.txt)"
    for word in "$@"; do
        [ "$word" = --finding ] || printf -- '- %s\n' "$word"
    done
} > report.md

cat report.md
striatum work verdict "$verdict" "$@" --summary "$(sed 1q report.md)"
