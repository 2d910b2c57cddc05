#!/bin/sh
# Assembles instructions.s and forms.s (GNU as) and writes "bytes | text" lines to instructions.txt and forms.txt.
set -e
cd "$(dirname "$0")"
object=$(mktemp)
for name in instructions forms; do
    : > "$name.txt"
    grep -v '^#' "$name.s" | while read -r line; do
        printf '.intel_syntax noprefix\n%s\n' "$line" | as --64 -o "$object" -
        objcopy -O binary -j .text "$object" "$object.bin"
        printf '%s | %s\n' "$(od -An -v -tx1 "$object.bin" | tr -d '\n' | sed 's/^ //')" "$line" >> "$name.txt"
    done
done
rm -f "$object" "$object.bin"
