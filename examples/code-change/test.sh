# Every language that greet.sh knows greets by name.
set -eu
for language in $(sed -n 's/^    \([a-z][a-z]\)).*/\1/p' greet.sh); do
    said=$(sh greet.sh "$language" Ada)
    case $said in
        *Ada*) ;;
        *) echo "$language does not say the name: $said"; exit 1 ;;
    esac
done
