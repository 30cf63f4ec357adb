import { type ChildProcess, spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { burst } from '../load/burst.ts'
import { type LoadFixture, startLoadFixture } from '../load/load-fixture.ts'

/** A program that keeps a core busy for five minutes at most. */
const BUSY_LOOP = 'for (const end = Date.now() + 300_000; Date.now() < end;);'

describe.each([
  ['alone', 0],
  ['beside a busy process on each core', availableParallelism()],
])('bursts of streams: %s', (_, busy) => {
  let fixture: LoadFixture
  let others: ChildProcess[] = []
  beforeAll(async () => {
    fixture = await startLoadFixture({ upstream: 'short-stream', afterMs: 1_000 })
    others = Array.from({ length: busy }, () =>
      spawn(process.execPath, ['-e', BUSY_LOOP], { stdio: 'ignore' }),
    )
  })
  afterAll(async () => {
    for (const other of others) other.kill('SIGKILL')
    await fixture?.close()
  })

  for (const calls of [400, 1_000, 2_000])
    for (const on of ['new connections', 'kept connections'] as const)
      for (const bodyBytes of [1_000, 100_000])
        test(`streams that clients open at the same moment are all served: ${calls} on ${on}, with bodies of ${bodyBytes} bytes`, {
          timeout: 120_000,
        }, async () => {
          const result = await burst({ port: fixture.gateway.port, calls, on, bodyBytes })
          console.info(JSON.stringify(result))
          expect(result.counts).toEqual({ '200': calls })
        })
})
