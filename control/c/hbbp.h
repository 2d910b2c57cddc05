/* A switch for the recordings of hbbp, in the hands of the program that is recorded.
 *
 *     hbbp_mark("load");      this is phase `load` of `hbbp mix --rows phase`
 *     ...
 *     hbbp_mark("solve");     and this `solve`
 *     ...
 *     hbbp_stop();            nothing of this is in the recording
 *     ...
 *     hbbp_start();
 *
 * Compile hbbp.c into the program; it needs Linux and C11, and no library. Without a recording all calls do nothing, so they
 * can stay in what is delivered: a look at the clock, and once in a second a look for a recording. A process is recorded if it, one
 * of its ancestors, or everything (`hbbp record -a`) is being recorded by the same user.
 *
 * What a call says holds for the process that makes it, with all its threads, and for processes that it forks after that. A
 * process that executes another program has said nothing. `hbbp control` says the same for all processes of a recording; the
 * latest word counts.
 *
 * A call is one write(2) of 128 bytes to a pipe and never waits. Messages for which there is no room are lost, and the
 * recording says how many. All functions may be called from all threads and leave errno as it was. */
#ifndef HBBP_H
#define HBBP_H

#ifdef __cplusplus
extern "C" {
#endif

/* This process is recorded from now on. It is from its beginning on unless hbbp_stop was called or the recording began with
 * --off. */
void hbbp_start(void);

/* Nothing of this process is recorded from now on. */
void hbbp_stop(void);

/* What this process does from now on is the phase of that name, of at most 100 bytes; longer ones are cut. It lasts until the
 * next mark. An empty name, or NULL, ends the phase. */
void hbbp_mark(const char *name);

/* 1 if what this process does is being recorded: there is a recording, and it is not switched off; else 0. */
int hbbp_is_recording(void);

#ifdef __cplusplus
}
#endif

#endif
