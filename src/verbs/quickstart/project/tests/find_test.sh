# bin/find.sh finds a word whatever its case.
set -eu
FIELDNOTES=$(mktemp -d)
export FIELDNOTES
trap 'rm -rf "$FIELDNOTES"' EXIT

printf '08:15 saw the first Swallow\n21:40 rain\n' > "$FIELDNOTES/2031-04-01.txt"
said=$(sh bin/find.sh swallow)
test "$said" = '2031-04-01 08:15 saw the first Swallow' || {
    printf 'got: %s\n' "$said"
    exit 1
}
