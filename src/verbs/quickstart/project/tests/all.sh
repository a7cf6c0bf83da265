#!/bin/sh
# Runs every test and says which are red.
set -u
cd "$(dirname "$0")/.." || exit 1
red=0
for test in tests/*_test.sh; do
    if said=$(sh "$test" 2>&1); then
        printf 'ok   %s\n' "$test"
    else
        red=1
        printf 'RED  %s\n%s\n' "$test" "$said"
    fi
done
exit "$red"
