/**
 * Node's flags for the commands that serve calls, which sluice.mjs starts itself again with. An unknown flag
 * would end Node: Nodes 20 to 26 know these. src/process/collector-flags.ts has those that can wait.
 */
export const FLAGS = [
  // Calls are many and short-lived, so their garbage is collected in the young generation: a large one, by
  // one thread (several have too little work and wait for each other).
  '--min-semi-space-size=32',
  '--max-semi-space-size=32',
  // The young generation keeps its size when nobody calls: V8 would shrink it, and learn anew how large it
  // must be.
  '--no-memory-reducer',
  '--single-threaded-gc',
  '--v8-pool-size=1',
  // Node's own code is copied to large pages, which takes some 50 ms of the start: whatever ran meanwhile,
  // few of its addresses have to be translated anew. A system that has no such pages does without.
  '--use-largepages=silent',
]
