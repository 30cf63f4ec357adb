import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** The night tier: what takes longer than a change can wait for. NIGHT_SEED repeats a night; each prints its own. */
export default defineConfig({
  test: {
    include: ['test/night/**/*.test.ts'],
    globalSetup: ['test/postgres-server.ts', 'test/prepared-folder.ts'],
    // Threads of databases compile their sources once, as they do in the program.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') },
    testTimeout: 600_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
