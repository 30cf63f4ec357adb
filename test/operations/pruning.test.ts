import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { plainConfiguration, ROOT } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { ENGINES } from '../stores/engines.ts'

const DAY_S = 86_400
const EARLY_TIMERS = fileURLToPath(new URL('../fixtures/early-timers-preload.ts', import.meta.url))
const NO_LIMIT = { requests: 0, window: '1s' }
const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

describe.each(ENGINES)('the audit log on $name', (engine) => {
  test('the gateway deletes entries of the audit log after 400 days', async () => {
    const { place } = await engine.database()
    const clock = dateClock()
    // The database has the real time, so that it keeps later entries.
    clock.move(-401 * DAY_S)
    const fixture = await startFixture(
      (upstream) => ({
        ...plainConfiguration(upstream.baseUrl('m')),
        rate_limits: { global: NO_LIMIT, critical: NO_LIMIT },
      }),
      {
        env: {
          ...clock.env,
          NODE_OPTIONS: `${clock.env['NODE_OPTIONS']} --import ${EARLY_TIMERS}`,
          ...(place.startsWith('postgres') && { DATABASE_URL: place }),
        },
      },
    )
    onTestFinished(() => fixture.close())
    const { gateway } = fixture
    const named = async (): Promise<readonly string[]> => {
      const { data, message } = await manage<{ items: { object: { name: string } }[] }>(
        gateway.url,
        ROOT_ACCOUNT,
        'GET /api/audit?page_size=100&action=user.create',
      )
      expect(message).toBe('')
      return data.items.map(({ object }) => object.name)
    }
    // A database that is too slow for an answer may have stored the user: only the log tells.
    const name = async (username: string): Promise<void> => {
      const body = { username, password: 'a long password', display_name: username, role: 1 }
      const asked = async (): Promise<readonly string[]> => {
        await manage(gateway.url, ROOT_ACCOUNT, 'POST /api/user/', body)
        return named()
      }
      await expect.poll(asked).toContain(username)
    }
    await name('early')
    clock.move(-399 * DAY_S)
    await name('later')
    await expect.poll(named).toEqual(expect.arrayContaining(['later', 'early']))
    // A process that sees the clock move that far removes nothing for a day.
    await gateway.stop()
    clock.move(0)
    await gateway.restart()
    await expect.poll(async () => (await named()).includes('early')).toBe(false)
    await expect.poll(named).toContain('later')
    // What such a database removed without an answer is reported as a failure, and by no later run.
    await expect
      .poll(() => gateway.logs())
      .toMatch(/"removedAuditEntries":[1-9]|some expired data was not removed/)
  })
})
