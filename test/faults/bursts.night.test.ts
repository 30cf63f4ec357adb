import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { burst } from '../load/burst.ts'
import { type LoadFixture, startLoadFixture } from '../load/load-fixture.ts'

describe('bursts of streams', () => {
  let fixture: LoadFixture
  beforeAll(async () => {
    fixture = await startLoadFixture({ upstream: 'short-stream', afterMs: 100 })
  })
  afterAll(() => fixture?.close())

  // The gateway has just started, so that its code is not optimized yet. The night has larger bursts and bodies.
  test.each([
    [400, 'new connections', 1_000],
    [1_000, 'kept connections', 1_000],
  ] as const)(
    'streams that are opened at the same moment are all served: %d on %s, with bodies of %d bytes',
    async (calls, on, bodyBytes) => {
      let attempts = 0
      const counts = async (): Promise<unknown> => {
        // Its code is not optimized yet in any attempt.
        if (attempts++ > 0) await fixture.gateway.restart()
        const result = await burst({ port: fixture.gateway.port, calls, on, bodyBytes })
        console.info(JSON.stringify(result))
        return result.counts
      }
      // While other programs keep the machine busy, it is overloaded by so many streams, and refuses some.
      await expect.poll(counts, { timeout: 240_000 }).toEqual({ '200': calls })
    },
  )
})
