import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { filledFolder, SECRET } from '../../../test/stores/filled-store.ts'
import { ENGINES } from '../../../test/stores/engines.ts'
import { readEnvironment } from '../../config/environment.ts'
import { migrate } from './migrate.ts'

describe.each(ENGINES.filter(({ name }) => name === 'PostgreSQL'))('a copy to $name', (engine) => {
  test('a database copied by sluice migrate has the same sums of charges as its source', async () => {
    const filling = fc.record({
      users: fc.integer({ min: 1, max: 4 }),
      tokensEach: fc.integer({ min: 1, max: 3 }),
      charges: fc.array(fc.nat({ max: 2 ** 40 }), { maxLength: 30 }),
      openHolds: fc.nat({ max: 3 }),
    })
    await fc.assert(
      fc.asyncProperty(filling, async (given) => {
        const folder = await filledFolder(given)
        const { place } = await engine.database()
        const environment = readEnvironment(
          { DATA_DIR: folder, GATEWAY_SECRET: SECRET },
          {},
          join(folder, '..'),
        )
        const { here, there, differences } = await migrate({
          environment,
          to: place,
          dryRun: false,
          onProgress: () => {},
        })
        expect(differences).toEqual([])
        expect(there).toEqual(here)
        // Each open hold is settled at 100; balance plus usage is the granted quota.
        const charged = given.charges.reduce((sum, quota) => sum + quota, 0) + 100 * given.openHolds
        expect(there?.totals['charged in the usage log']).toBe(String(charged))
        expect(there?.totals['used by tokens']).toBe(String(charged))
        expect(there?.totals['quota of users']).toBe(String(1_000_000 * given.users - charged))
        for (const { remain, used, logged, days } of there?.tokens ?? []) {
          expect([remain + used, logged, days]).toEqual([500_000, used, used])
        }
      }),
      { numRuns: 4 },
    )
  })
})
