import { describe, expect, test } from 'vitest'
import { withoutRedis } from '../equipment/redis-server.ts'
import { expectKept } from '../nodes/kept-limit.ts'
import { pressLimit } from '../nodes/limits-run.ts'

describe.skipIf(withoutRedis('a limit over three nodes'))('a limit over three nodes', () => {
  test.each([
    [180, 10, 10],
    [67, 67, 66],
  ])(
    'called by %i, %i and %i clients is kept to within 97 %% and 101 %%',
    { timeout: 180_000 },
    async (...clients) => {
      const report = await pressLimit({ requests: 1000, windowMs: 10_000, clients, windows: 5 })
      console.info(report)
      expect(report.refused).toBeGreaterThan(1000)
      expectKept(report)
    },
  )
})
