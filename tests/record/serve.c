/* serve FOLDER FILE: mounts a file system (FUSE) at the folder, with FILE as `program`, and serves it until who started it ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int server, file;
static struct stat size;

static void answer(struct fuse_in_header *to, int error, const void *body, size_t length) {
    struct fuse_out_header head = {.len = sizeof head + length, .error = -error, .unique = to->unique};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)body, length}};
    if (writev(server, parts, 2) < 0 && error == 0)
        perror("answer");
}

static struct fuse_attr attributes(unsigned long node) {
    struct fuse_attr one = {.ino = node, .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0755, .nlink = 1};
    one.size = node == 1 ? 0 : size.st_size;
    return one;
}

int main(int argc, char **argv) {
    static char request[1 << 18], bytes[1 << 18];
    char options[99];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    file = open(argv[argc - 1], O_RDONLY);
    server = open("/dev/fuse", O_RDWR);
    fstat(file, &size);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", server);
    if (mount("served", argv[1], "fuse", MS_RDONLY, options))
        return perror("mount"), 1;
    while (read(server, request, sizeof request) > 0) {
        struct fuse_in_header *head = (void *)request;
        void *body = head + 1;
        if (head->opcode == FUSE_INIT) {
            struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
            answer(head, 0, &out, sizeof out);
        } else if (head->opcode == FUSE_LOOKUP && !strcmp(body, "program")) {
            struct fuse_entry_out out = {.nodeid = 2, .attr = attributes(2)};
            answer(head, 0, &out, sizeof out);
        } else if (head->opcode == FUSE_GETATTR) {
            struct fuse_attr_out out = {.attr = attributes(head->nodeid)};
            answer(head, 0, &out, sizeof out);
        } else if (head->opcode == FUSE_OPEN || head->opcode == FUSE_OPENDIR) {
            struct fuse_open_out out = {.fh = 1};
            answer(head, 0, &out, sizeof out);
        } else if (head->opcode == FUSE_READ) {
            struct fuse_read_in *in = body;
            ssize_t length = pread(file, bytes, in->size < sizeof bytes ? in->size : sizeof bytes, in->offset);
            answer(head, length < 0, bytes, length < 0 ? 0 : length);
        } else if (head->opcode != FUSE_FORGET && head->opcode != FUSE_BATCH_FORGET) {
            int known = head->opcode == FUSE_FLUSH || head->opcode == FUSE_RELEASE || head->opcode == FUSE_RELEASEDIR;
            answer(head, known ? 0 : head->opcode == FUSE_LOOKUP ? ENOENT : ENOSYS, NULL, 0);
        }
    }
    return 0;
}
