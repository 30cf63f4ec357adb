import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { withoutRedis } from '../fixtures/redis-server.ts'

/** Runs a measurement, and prints its output, including the seed. */
function bench(
  name: 'run' | 'nodes' | 'json-scan' | 'signatures',
  ...options: readonly string[]
): { readonly code: number | null; readonly output: string } {
  const program = fileURLToPath(new URL(`../../bench/${name}.ts`, import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...options], { encoding: 'utf8' })
  console.info(stdout + stderr)
  return { code: status, output: stdout + stderr }
}

test('calls, events and starts cost at most the recorded maximum, relative to a simple forwarder', {
  timeout: 1_200_000,
}, () => {
  expect(bench('run', '--quick', '--check')).toMatchObject({ code: 0 })
})

test('an idle gateway takes at most the recorded maximum of memory, relative to a simple forwarder', {
  timeout: 120_000,
}, () => {
  expect(bench('run', '--only', 'idle-memory', '--check')).toMatchObject({ code: 0 })
})

test('scanning a request costs at most as much as JSON.parse, and a tenth more for a request full of escapes', {
  timeout: 120_000,
}, () => {
  expect(bench('json-scan', '--check')).toMatchObject({ code: 0 })
})

test('keeping and restoring signatures costs a call less than a millisecond, and an event next to nothing', {
  timeout: 120_000,
}, () => {
  expect(bench('signatures', '--check')).toMatchObject({ code: 0 })
})

test.skipIf(withoutRedis('CPU over three nodes'))(
  'a call costs as much CPU over three nodes as over one',
  {
    timeout: 600_000,
  },
  () => {
    expect(bench('nodes', '--quick', '--check')).toMatchObject({ code: 0 })
  },
)
