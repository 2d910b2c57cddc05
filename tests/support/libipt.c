/* Prints the address of each instruction that Intel's own decoder (libipt) finds in a trace. Words: the trace, the program, where its code is
   in the file, how long it is, and where it runs. */
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    static uint8_t bytes[1 << 22];
    if (count != 6)
        return 2;
    FILE *file = fopen(words[1], "rb");
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    struct pt_config config;
    pt_config_init(&config);
    config.begin = bytes;
    config.end = bytes + size;
    struct pt_insn_decoder *decoder = pt_insn_alloc_decoder(&config);
    struct pt_image *image = pt_insn_get_image(decoder);
    int status = pt_image_add_file(image, words[2], strtoull(words[3], 0, 0), strtoull(words[4], 0, 0), NULL, strtoull(words[5], 0, 0));
    if (status >= 0)
        status = pt_insn_sync_forward(decoder);
    while (status >= 0) {
        while (status >= 0 && status & pts_event_pending) {
            struct pt_event event;
            status = pt_insn_event(decoder, &event, sizeof event);
        }
        if (status < 0 || status & pts_eos)
            break;
        struct pt_insn insn;
        status = pt_insn_next(decoder, &insn, sizeof insn);
        /* The first one means that there is none: `ptic_error`, from version 2.1 on `ptic_unknown`. */
        if (insn.iclass != 0)
            printf("%llx\n", (unsigned long long)insn.ip);
    }
    if (status < 0 && status != -pte_eos)
        fprintf(stderr, "%s\n", pt_errstr(pt_errcode(status)));
    return status < 0 && status != -pte_eos;
}
