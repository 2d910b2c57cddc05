#!/bin/sh
# Assembles instructions.s (GNU as) and writes "bytes | text" lines to instructions.txt.
set -e
cd "$(dirname "$0")"
object=$(mktemp)
: > instructions.txt
grep -v '^#' instructions.s | while read -r line; do
    printf '.intel_syntax noprefix\n%s\n' "$line" | as --64 -o "$object" -
    objcopy -O binary -j .text "$object" "$object.bin"
    printf '%s | %s\n' "$(od -An -v -tx1 "$object.bin" | tr -d '\n' | sed 's/^ //')" "$line" >> instructions.txt
done
rm -f "$object" "$object.bin"
