import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/runner/longest-first.ts'

/**
 * Tests that every change must pass and that `npm test` leaves out: whole folders, and units named `*.slow.test.ts`
 * (CONTRIBUTING.md: Adding a test).
 */
const SYSTEM = [
  '{src,packages,test}/**/*.slow.test.ts',
  'src/{accounts/ledger,content,store}/**/*.test.ts',
  ...[
    // One feature each, towards clients.
    'clients',
    'converted-calls',
    'demo',
    'batches',
    'endpoints',
    'equal-calls',
    'fidelity',
    'guards',
    'mcp',
    'prices',
    'providers',
    'responses',
    'routing',
    'streams',
    'websocket',
    // Towards operators, and whole processes.
    'commands',
    'console',
    'deploy',
    'faults',
    'fuzz',
    'load',
    'management',
    'nodes',
    'operations',
    'recipes',
    'release',
  ].map((family) => `test/${family}/**/*.test.ts`),
  'e2e/console/*.test.ts',
]

// A start of the program takes half the CPU time in a process where it ran before.
const SHARED_PROCESSES = { TEST_SHARED_PROCESSES: 'yes' }

/** What only the night runs (vitest.night.config.ts). */
const NIGHT = ['test/night/**', '**/*.night.test.ts', '**/node_modules/**']

/**
 * Every test that needs only this machine. `npm test` runs the project `fast`, `npm run test:system` the project
 * `system`; a path runs in the project that has it.
 */
export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          env: SHARED_PROCESSES,
          include: ['{src,packages,test,console}/**/*.test.ts'],
          exclude: [...NIGHT, ...SYSTEM],
        },
      },
      { extends: true, test: { name: 'system', env: SHARED_PROCESSES, include: SYSTEM, exclude: NIGHT } },
    ],
    reporters: ['default', './test/runner/watched-run.ts'],
    globalSetup: [
      'test/runner/old-compiled-code.ts',
      'test/runner/postgres-server.ts',
      'test/runner/prepared-folder.ts',
    ],
    // Threads of databases compile their sources once, as they do in the program.
    env: { TMPDIR: temporaryFolder(), NODE_COMPILE_CACHE: join(temporaryFolder(), 'node-compile-cache') },
    // Patience, and no assertion: a slow machine may take it all, and a test that is right ends early.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    isolate: false,
    // Node reads TypeScript itself, as in the program: no second transformer, and no copy of its results in each worker.
    experimental: { viteModuleRunner: false },
    // As the program is run: what tests make is soon forgotten, and several threads that collect it wait for each other.
    execArgv: [
      '--min-semi-space-size=32',
      '--max-semi-space-size=32',
      '--single-threaded-gc',
      '--v8-pool-size=1',
    ],
    // More than there may be cores: many files wait for a clock, or for a process.
    maxWorkers: 7,
    sequence: { sequencer: LongestFirst },
  },
})

// Thousands of durable commits are made, and no test looks at what a power cut would leave: memory is as good as a disk, where
// there is enough of it.
function temporaryFolder(): string {
  const memory = '/dev/shm'
  const otherwise = process.env['TMPDIR'] ?? '/tmp'
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize > 4 * 2 ** 30 ? memory : otherwise
  } catch {
    return otherwise
  }
}
