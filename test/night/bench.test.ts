import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { withoutRedis } from '../fixtures/redis-server.ts'

/** Runs a measurement, and prints its output, including the seed. */
function bench(
  name: 'race' | 'nodes' | 'json' | 'signatures' | 'code',
  ...options: readonly string[]
): { readonly code: number | null; readonly output: string } {
  const program = fileURLToPath(new URL('../../bench/run.ts', import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, name, ...options], {
    encoding: 'utf8',
  })
  console.info(stdout + stderr)
  return { code: status, output: stdout + stderr }
}

test('the benchmark figures of calls, stream events and starts are at most recorded multiples of those of a simple forwarder', {
  timeout: 1_200_000,
}, () => {
  expect(bench('race', '--quick', '--check')).toMatchObject({ code: 0 })
})

test('an idle gateway takes at most the recorded multiple of the memory that an idle simple forwarder takes', {
  timeout: 120_000,
}, () => {
  expect(bench('race', '--only', 'idle-memory', '--check')).toMatchObject({ code: 0 })
})

test('scanning a request takes at most as long as JSON.parse, or a tenth longer if the request is full of escapes', {
  timeout: 120_000,
}, () => {
  expect(bench('json', '--check')).toMatchObject({ code: 0 })
})

test('keeping and restoring thought signatures takes less than a millisecond of a call, and almost no time of an event', {
  timeout: 120_000,
}, () => {
  expect(bench('signatures', '--check')).toMatchObject({ code: 0 })
})

test.skipIf(withoutRedis('CPU over three nodes'))(
  'a call takes as much CPU time with three nodes as with one',
  {
    timeout: 600_000,
  },
  () => {
    expect(bench('nodes', '--quick', '--check')).toMatchObject({ code: 0 })
  },
)

test('the walk of a streamed call in docs/architecture.md names every file of src/call that the call passes', {
  timeout: 120_000,
}, () => {
  const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8')
  const [, walk = ''] = /^## A streamed call\n(.*?)^## A management write/ms.exec(page) ?? []
  const [, passed = ''] =
    /native streamed chat(.*?)chat to messages/s.exec(bench('code', '--files').output) ?? []
  const files = passed.match(/^src\/call\/\S+\.ts$/gm) ?? []
  expect(files).toContain('src/call/relay.ts')
  expect(files.filter((file) => !walk.includes(`${basename(file)}\``))).toEqual([])
})
