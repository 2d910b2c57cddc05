#!/bin/sh
# Makes the seeds. Of the `blocks` target: one byte n, n observations of three bytes (see `check` in analyzer/tests/invariants),
# then an ELF file; `part` was found by fuzzing, and is not made here. Of the `lines` target: sections of debug information (see analyzer/tests/debug_sections). Needs GNU as, ld, objcopy
# and strip, g++, clang++-19 and perl.
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

cat > "$work/lines.cc" <<'END'
struct Sum { unsigned value; void add(unsigned x) { if (x & 1) value += x; else value ^= x; } };
static inline unsigned leaf(unsigned x) { return x % 3 ? x / 7 : x * 5; }
static inline unsigned inner(unsigned x) { unsigned y = leaf(x); return y > 10 ? leaf(y) + 1 : y; }
__attribute__((cold)) unsigned rare(unsigned x) { return x * 3; }
extern "C" unsigned _start(unsigned n)
{
    Sum sum{n};
    for (unsigned i = 0; i < n; i++) { if (i % 5 == 0 || i % 7 == 3) sum.add(inner(i)); else sum.add(i); }
    return n > 99 ? sum.value : rare(n);
}
END
sections="info abbrev line str line_str rnglists ranges addr str_offsets"
seed() {
    name=$1; shift
    "$@" -O2 -g -nostdlib -static -no-pie -Wl,-Ttext=0x401000 -o "$work/lines" "$work/lines.cc"
    for section in $sections; do
        : > "$work/$section"
        objcopy -O binary --only-section=.debug_$section --set-section-flags .debug_$section=alloc "$work/lines" "$work/$section" 2> /dev/null || :
    done
    (cd "$work" && perl -e 'for (@ARGV) { print pack "v", -s } for (@ARGV) { open F, "<", $_; local $/; print <F> }' $sections) > "lines/$name"
}
seed gcc4 g++ -gdwarf-4
seed gcc5 g++ -gdwarf-5
seed clang4 clang++-19 -gdwarf-4 -fdebug-info-for-profiling
seed clang5 clang++-19 -gdwarf-5 -fdebug-info-for-profiling
rm -r "$work"
