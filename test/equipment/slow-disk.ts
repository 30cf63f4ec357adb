import type { Patch } from './patched-copy.ts'

/** A disk on which a commit takes its time: what the gates are there for happens in every round, not in one of many. */
export const SLOW_DISK: Patch = {
  file: 'src/store/sqlite/write-batch.ts',
  text: 'this.#commit.run()',
  by: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40); this.#commit.run()',
}
