import { defineConfig } from 'vitest/config'

/** The day tier: every test that needs nothing but this machine. What takes longer lives under test/night. */
export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['test/night/**', 'node_modules/**'],
    globalSetup: ['test/postgres-server.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    pool: 'forks',
    // More than there may be cores: many of them wait for a clock.
    maxWorkers: 3,
    // Where others share the machine, a second look tells a slow moment from a fault.
    retry: process.env['CI'] ? 1 : 0,
  },
})
