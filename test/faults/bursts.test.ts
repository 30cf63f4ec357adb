import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { burst } from '../load/burst.ts'
import { type LoadStage, setLoadStage } from '../load/load-stage.ts'

describe('streams that are all opened at one moment are all served', () => {
  let stage: LoadStage
  beforeAll(async () => {
    stage = await setLoadStage({ upstream: 'short-stream', afterMs: 100 })
  })
  afterAll(() => stage?.close())

  // Of a gateway that has just started, and whose code nothing has warmed up.
  test.each([
    [400, 'new connections', 1_000],
    [1_000, 'kept connections', 1_000],
    [400, 'kept connections', 100_000],
    [1_000, 'new connections', 1_000],
    [400, 'new connections', 100_000],
  ] as const)('%d on %s, with bodies of %d bytes', { timeout: 60_000 }, async (calls, on, bodyBytes) => {
    const result = await burst({ port: stage.gateway.port, calls, on, bodyBytes })
    console.info(JSON.stringify(result))
    expect(result.counts).toEqual({ '200': calls })
  })
})
