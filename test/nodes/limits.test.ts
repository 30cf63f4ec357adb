import { describe, test } from 'vitest'
import { withoutRedis } from '../equipment/redis-server.ts'
import { expectKept } from './kept-limit.ts'
import { exceedLimit } from './limits-run.ts'

describe.skipIf(withoutRedis('a limit over three nodes'))('a limit over three nodes', () => {
  test('is kept to within 97 % and 101 %, however uneven the calls', {
    timeout: 300_000,
  }, async () => {
    const report = await exceedLimit({ requests: 200, windowMs: 2000, clients: [45, 3, 3], windows: 3 })
    console.info(report)
    expectKept(report)
  })
})
