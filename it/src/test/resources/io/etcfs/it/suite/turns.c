/*
 * Stands where a suite expects its program, and runs that ($TURNS_PROGRAM) with the arguments it got: the second time, and each second time from then on, not
 * in the current directory but in the same one below $TURNS_OTHER instead of $TURNS_ONE. $TURNS_COUNTER: a file that grows by one byte a turn.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(120);
}

/* How many turns there have been, this one included. */
static off_t turns(const char *counter) {
    int fd = open(counter, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0 || write(fd, "", 1) != 1) {
        fail(counter);
    }
    off_t now = lseek(fd, 0, SEEK_CUR);
    close(fd);
    return now;
}

static void go_to_the_other(const char *one, const char *other) {
    char here[PATH_MAX], there[PATH_MAX * 2];
    if (!getcwd(here, sizeof here)) {
        fail("getcwd");
    }
    size_t length = strlen(one);
    if (strncmp(here, one, length) != 0 || (here[length] != '/' && here[length] != 0)) {
        fprintf(stderr, "%s is not below %s\n", here, one);
        exit(120);
    }
    snprintf(there, sizeof there, "%s%s", other, here + length);
    if (chdir(there) != 0) {
        fail(there);
    }
}

int main(int argc, char **argv) {
    char *program = getenv("TURNS_PROGRAM"), *counter = getenv("TURNS_COUNTER"), *one = getenv("TURNS_ONE"), *other = getenv("TURNS_OTHER");
    if (!program || !counter || !one || !other) {
        fprintf(stderr, "TURNS_PROGRAM, _COUNTER, _ONE and _OTHER must be set\n");
        return 120;
    }
    if (turns(counter) % 2 == 0) {
        go_to_the_other(one, other);
    }
    execv(program, argv);
    fail(program);
}
