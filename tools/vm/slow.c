/* Loaded into a user-mode Linux (LD_PRELOAD), whose time then is SLOWER times slower than the host's: what the host is too busy to do in time is in time there. That kernel
 * asks one clock, and sets one timer, by durations. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static int (*set_timer)(timer_t, int, const struct itimerspec *, struct itimerspec *);
static int (*get_timer)(timer_t, struct itimerspec *);
static long long slower = 1, origin;

static long long nanoseconds(struct timespec t) { return t.tv_sec * SECOND + t.tv_nsec; }

static struct timespec timespec_of(long long ns) { return (struct timespec) {ns / SECOND, ns % SECOND}; }

__attribute__((constructor)) static void begin(void) {
    struct timespec now;
    const char *factor = getenv("SLOWER");
    if (factor && atoi(factor) > 0) slower = atoi(factor);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    origin = nanoseconds(now);
    *(void **) &set_timer = dlsym(RTLD_NEXT, "timer_settime");
    *(void **) &get_timer = dlsym(RTLD_NEXT, "timer_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    int result = syscall(SYS_clock_gettime, clock, t);
    if (result == 0 && clock == CLOCK_MONOTONIC) *t = timespec_of(origin + (nanoseconds(*t) - origin) / slower);
    return result;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *wanted, struct itimerspec *before) {
    struct itimerspec longer = {timespec_of(nanoseconds(wanted->it_interval) * slower), timespec_of(nanoseconds(wanted->it_value) * slower)};
    return set_timer(timer, flags, &longer, before);
}

int timer_gettime(timer_t timer, struct itimerspec *left) {
    int result = get_timer(timer, left);
    if (result == 0) {
        left->it_interval = timespec_of(nanoseconds(left->it_interval) / slower);
        left->it_value = timespec_of(nanoseconds(left->it_value) / slower);
    }
    return result;
}
