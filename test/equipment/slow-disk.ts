import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Patch } from './patched-copy.ts'

/**
 * A disk on which a commit takes its time: what the gates are there for happens in every round, not in one of
 * many.
 */
export const SLOW_DISK: Patch = {
  file: 'src/store/sqlite/write-batch.ts',
  text: 'this.#commit.run()',
  by: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40); this.#commit.run()',
}

/**
 * A disk that `stick` makes hang in the middle of a commit: whatever is delivered then, is delivered before
 * it is durable.
 */
export const STICKING_DISK: Patch = {
  file: 'src/store/sqlite/write-batch.ts',
  text: 'this.#commit.run()',
  by: `while (process.getBuiltinModule('node:fs').existsSync(process.env['DATA_DIR'] + '/stuck'))
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
      this.#commit.run()`,
}

/** Lets the disk of a gateway hang, until `free` is called. */
export function stick(dataDir: string): { free(): void } {
  const mark = join(dataDir, 'stuck')
  writeFileSync(mark, '')
  return { free: () => rmSync(mark) }
}
