/**
 * Node flags for the commands that serve calls; sluice.mjs starts itself again with them. An unknown flag
 * would make Node exit; Nodes 20 to 26 know these. Flags that can be set later are in
 * src/gateway/v8-flags.ts.
 */
export const FLAGS = [
  // Calls are many and short-lived, so their garbage is collected in the young generation. It is large, and
  // collected by one thread, because several have too little work and wait for each other.
  '--min-semi-space-size=32',
  '--max-semi-space-size=32',
  // Keeps the young generation at its size when there are no calls: V8 would shrink it and then have to find
  // the right size again.
  '--no-memory-reducer',
  '--single-threaded-gc',
  '--v8-pool-size=1',
  // No text from outside can name the prototype that all objects share: `__proto__` is an ordinary name.
  '--disable-proto=delete',
  // Copies Node's own code to large pages, which takes about 50 ms of the start: after other code has run,
  // few address translations are lost from the CPU's cache. Has no effect on a system without such pages.
  '--use-largepages=silent',
]
