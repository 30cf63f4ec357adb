import { randomInt } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { defineConfig } from 'vitest/config'

/** Import of the day tier's files that try less by day than at night. */
const TIER_IMPORT = /from '[./]+(?:test\/)?(?:runner\/)?tier\.ts'/

/**
 * The night tier: what takes longer than a change can wait for, and tests of the day with their full counts.
 * NIGHT_SEED repeats a night; each prints its own.
 */
export default defineConfig({
  test: {
    include: [
      'test/night/**/*.test.ts',
      '{src,packages,test}/**/*.night.test.ts',
      'e2e/console/night/*.test.ts',
      'e2e/site/*.test.ts',
      ...filesWithFullCounts(),
    ],
    globalSetup: ['test/runner/postgres-server.ts', 'test/runner/prepared-folder.ts'],
    setupFiles: ['test/night/seeded-laws.ts'],
    env: {
      // Threads of databases compile their sources once, as they do in the program.
      NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache'),
      TEST_TIER: 'night',
      NIGHT_SEED: process.env['NIGHT_SEED'] ?? String(randomInt(2 ** 31)),
    },
    // Node reads TypeScript itself, as by day.
    experimental: { viteModuleRunner: false },
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})

function filesWithFullCounts(): string[] {
  return globSync(['{src,packages,test}/**/*.test.ts', 'e2e/console/*.test.ts']).filter((path) =>
    TIER_IMPORT.test(readFileSync(path, 'utf8')),
  )
}
