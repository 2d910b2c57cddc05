/* Memory that somebody has to serve: pages that another process gives when they are touched, by userfaultfd(2), or as a file system of its own
 * (FUSE). */
#include "kinds.h"
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>

enum { PAGE = 4096, PAGES = 4000 };

/* What the server and the program tell each other. */
struct told {
    volatile long is_at, served, twice;
};
static struct told *told;

static pid_t start_server(void (*serve)(int), int file) {
    told = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(told != MAP_FAILED);
    fflush(stdout);
    pid_t server = fork();
    NEED(server >= 0);
    if (!server) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(file);
        _exit(0);
    }
    return server;
}
static void end_server(pid_t server) {
    int status;
    kill(server, SIGKILL);
    NEED(waitpid(server, &status, 0) == server);
}

/* Each page is given when the program says that it has come so far: one that is touched before is not given before. */
static char *area;
static void give_pages(int faults) {
    static char content[PAGE];
    struct uffd_msg message;
    while (read(faults, &message, sizeof message) == sizeof message) {
        uintptr_t page = message.arg.pagefault.address & -PAGE;
        long index = (page - (uintptr_t)area) / PAGE;
        while (told->is_at < index)
            usleep(100);
        memset(content, 1 + index % 100, PAGE);
        struct uffdio_copy copy = {page, (uintptr_t)content, PAGE, 0, 0};
        /* The program may go on at once. */
        told->served++;
        if (ioctl(faults, UFFDIO_COPY, &copy))
            told->twice++;
    }
}
static int serve_area(long features) {
    int faults = syscall(SYS_userfaultfd, O_CLOEXEC | features);
    if (faults < 0)
        return faults;
    struct uffdio_api api = {.api = UFFD_API};
    NEED(ioctl(faults, UFFDIO_API, &api) == 0);
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {{(uintptr_t)area, PAGES * PAGE}, UFFDIO_REGISTER_MODE_MISSING, 0};
    NEED(ioctl(faults, UFFDIO_REGISTER, &range) == 0);
    return faults;
}
/* Code of its own without system calls, so that a look ahead may go from one page to the next. */
static long touch_all(char *memory) {
    long sum = 0;
    for (long page = 0; page < PAGES; page++) {
        uint64_t n = 27 + page;
        for (unsigned i = 0; i < 3000; i++)
            n = n & 1 ? 3 * n + 1 : n > 1 ? n / 2 : 27 + i;
        told->is_at = page;
        sum += memory[page * PAGE + (n & 1)];
    }
    return sum;
}
static void pages_given(long features) {
    int faults = serve_area(features);
    if (faults < 0) {
        puts("refused");
        return;
    }
    pid_t server = start_server(give_pages, faults);
    /* The guide: record, "Inside the program": until the recorder notices. */
    compute(600);
    printf("%ld\n", touch_all(area));
    printf("served %ld, asked twice %ld\n", told->served, told->twice);
    end_server(server);
}
static void pages_of_a_server(void) { pages_given(0); }
static void pages_of_a_server_for_its_own_faults(void) { pages_given(UFFD_USER_MODE_ONLY); }
/* Pages that were used all the time are taken away, and touched again only when their server, which stood still, goes on. */
static void pages_of_a_server_that_stands_still(void) {
    int faults = serve_area(0), status;
    if (faults < 0) {
        puts("refused");
        return;
    }
    pid_t server = start_server(give_pages, faults);
    told->is_at = PAGES;
    compute(600);
    long sum = 0;
    for (int round = 0; round < 5; round++) {
        for (uint64_t i = 0; i < 3000000; i++)
            sum += area[i % 16 * PAGE];
        NEED(kill(server, SIGSTOP) == 0 && waitpid(server, &status, WUNTRACED) == server);
        NEED(madvise(area, 16 * PAGE, MADV_DONTNEED) == 0);
        compute(50);
        NEED(kill(server, SIGCONT) == 0);
    }
    printf("%ld\n", sum);
    printf("served %ld, asked twice %ld\n", told->served, told->twice);
    end_server(server);
}

/* A file system with one file, `pages`, each page of which is given when the program has come so far. */
static void answer(int device, uint64_t unique, int error, const void *data, size_t length) {
    static char message[sizeof(struct fuse_out_header) + 65536 * 4];
    struct fuse_out_header header = {sizeof header + length, error, unique};
    memcpy(message, &header, sizeof header);
    if (length)
        memcpy(message + sizeof header, data, length);
    (void)!write(device, message, sizeof header + length);
}
static struct fuse_attr attributes(uint64_t node) {
    return node == 1 ? (struct fuse_attr){.ino = 1, .mode = S_IFDIR | 0755, .nlink = 2}
                     : (struct fuse_attr){.ino = 2, .mode = S_IFREG | 0644, .nlink = 1, .size = PAGES * PAGE, .blocks = PAGES * 8};
}
static void serve_files(int device) {
    static char request[1 << 18], content[65536 * 4];
    for (ssize_t length; (length = read(device, request, sizeof request)) > 0;) {
        struct fuse_in_header *head = (void *)request;
        void *body = head + 1;
        switch (head->opcode) {
        case FUSE_INIT: {
            struct fuse_init_in *in = body;
            struct fuse_init_out out = {.major = 7, .minor = 31, .max_readahead = 0, .max_write = PAGE, .time_gran = 1};
            (void)in;
            answer(device, head->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_LOOKUP: {
            struct fuse_entry_out out = {.nodeid = 2, .entry_valid = 1000, .attr_valid = 1000, .attr = attributes(2)};
            int known = !strcmp(body, "pages");
            answer(device, head->unique, known ? 0 : -ENOENT, &out, known ? sizeof out : 0);
            break;
        }
        case FUSE_GETATTR: {
            struct fuse_attr_out out = {.attr_valid = 1000, .attr = attributes(head->nodeid)};
            answer(device, head->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_OPEN:
        case FUSE_OPENDIR: {
            struct fuse_open_out out = {.fh = 1};
            answer(device, head->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_READ: {
            struct fuse_read_in *in = body;
            size_t size = in->size < sizeof content ? in->size : sizeof content;
            while (told->is_at < (long)(in->offset / PAGE))
                usleep(100);
            for (size_t i = 0; i < size; i++)
                content[i] = 1 + (in->offset + i) / PAGE % 100;
            told->served += size / PAGE;
            answer(device, head->unique, 0, content, size);
            break;
        }
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT:
            break;
        case FUSE_RELEASE:
        case FUSE_FLUSH:
        case FUSE_RELEASEDIR:
        case FUSE_ACCESS:
            answer(device, head->unique, 0, NULL, 0);
            break;
        default:
            answer(device, head->unique, -ENOSYS, NULL, 0);
        }
    }
}
static void files_of_a_server(void) {
    char place[] = "/tmp/hbbp-served-XXXXXX", path[64], options[128];
    int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0 || !mkdtemp(place)) {
        puts("refused");
        return;
    }
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d", device, getuid(), getgid());
    /* It goes with the process, however that ends. */
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("pages", place, "fuse", MS_NOSUID | MS_NODEV, options)) {
        rmdir(place);
        puts("refused");
        return;
    }
    pid_t server = start_server(serve_files, device);
    snprintf(path, sizeof path, "%s/pages", place);
    int file = open(path, O_RDONLY);
    NEED(file >= 0 && close(device) == 0);
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
    NEED(memory != MAP_FAILED && madvise(memory, PAGES * PAGE, MADV_RANDOM) == 0);
    compute(600);
    printf("%ld\n", touch_all(memory));
    printf("served %ld\n", told->served);
    munmap(memory, PAGES * PAGE);
    close(file);
    NEED(umount2(place, 0) == 0);
    end_server(server);
    rmdir(place);
}

#define KIND(name) {#name, name}
const struct kind served_memory[] = {
    KIND(pages_of_a_server), KIND(pages_of_a_server_for_its_own_faults), KIND(pages_of_a_server_that_stands_still),
    KIND(files_of_a_server), {NULL, NULL},
};
