#!/bin/sh
set -eu
"$(dirname "$0")/list.sh" | grep -i -- "$1"
