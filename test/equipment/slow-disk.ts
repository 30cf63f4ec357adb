import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Patch } from './patch.ts'

/** Makes each commit slow, so that responses wait for commits in every round. */
export const SLOW_DISK: Patch = {
  file: 'src/store/sqlite/write-batch.ts',
  text: 'this.#commit.run()',
  by: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40); this.#commit.run()',
}

/**
 * Makes the disk hang in the middle of a commit after `hangDisk`: what is delivered meanwhile is delivered
 * before it is durable.
 */
export const HANGING_DISK: Patch = {
  file: 'src/store/sqlite/write-batch.ts',
  text: 'this.#commit.run()',
  by: `while (process.getBuiltinModule('node:fs').existsSync(process.env['DATA_DIR'] + '/stuck'))
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
      this.#commit.run()`,
}

/** Makes the disk of a gateway hang, until `free` is called. */
export function hangDisk(dataDir: string): { free(): void } {
  const mark = join(dataDir, 'stuck')
  writeFileSync(mark, '')
  return { free: () => rmSync(mark) }
}
