/** Programs that people run, on real trees, with the second node looking on: {@link io.etcfs.it.tree.TreeTest}. */
package io.etcfs.it.tree;
