#!/bin/sh
# Makes the seeds of the `blocks` target: one byte n, n observations of three bytes (see `check` in analyzer/tests/invariants),
# then an ELF file. Needs GNU as, ld and strip.
set -e
cd "$(dirname "$0")"
work=$(mktemp -d)
cat > "$work/code.s" <<'END'
        .text
        .globl f
        .type f, @function
f:      .cfi_startproc
        test %edi, %edi
        je 1f
        lock
1:      cmpxchg %ecx, (%rdi)
        jne 1b
        call g@PLT
        call pick@PLT
        lea table(%rip), %rdx
        jmp *(%rdx,%rax,8)
        .cfi_endproc
        .size f, .-f
        .type nested, @function
outer:  nop
nested: syscall
        ret
        .size nested, .-nested
        .type pick, @gnu_indirect_function
        .globl pick
pick:   lea nested(%rip), %rax
        ret
        .globl g
        .weak g
        .data
table:  .quad f, nested
END
as -o "$work/code.o" "$work/code.s"
ld -shared -z noseparate-code -z max-page-size=16 --build-id=sha1 --no-warn-rwx-segments -o "$work/library" "$work/code.o"
ld -static -z noseparate-code -z max-page-size=16 --defsym g=f --no-warn-rwx-segments -e f -o "$work/program" "$work/code.o"
strip -o "$work/stripped" "$work/library"
for name in library program stripped; do
    { printf '\004\001\000\000\000\000\100\002\000\200\001\000\300'; cat "$work/$name"; } > "blocks/$name"
done
rm -r "$work"
