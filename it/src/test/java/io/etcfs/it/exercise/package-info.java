/** Long runs of random calls on the bytes of a few files, compared with a model: start at {@link io.etcfs.it.exercise.ExerciseTest}; the program is beside it in the resources. */
package io.etcfs.it.exercise;
