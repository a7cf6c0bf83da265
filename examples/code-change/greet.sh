#!/bin/sh
# Greets: greet.sh LANGUAGE NAME
case $1 in
    en) printf 'Hello, %s!\n' "$2" ;;
    *) printf 'no greeting in %s\n' "$1" >&2; exit 1 ;;
esac
