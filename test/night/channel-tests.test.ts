import { expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, ROOT } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'

/** A third batch of eight would begin after the minute: each test of root takes half of it. */
const SILENT = 17

test('a test of all channels ends within a minute, and names those that it did not reach', async () => {
  const names = Array.from({ length: SILENT }, (_, index) => `silent-${index}`)
  const fixture = await startFixture((upstream) => ({
    channels: names.map((name) => channel(name, upstream.baseUrl(name))),
    users: [ROOT],
  }))
  try {
    for (const name of names) fixture.upstream.script(name, { kind: 'silence' })
    const startedMs = performance.now()
    const root = { id: 1, accessToken: ROOT.access_token }
    const { data } = await manage<{ success: boolean | null; message: string }[]>(
      fixture.gateway.url,
      root,
      'POST /api/channel/test/all',
      {},
    )
    expect(performance.now() - startedMs).toBeLessThan(65_000)
    expect(data).toHaveLength(SILENT)
    expect(data.filter(({ success }) => success === false).length).toBeGreaterThanOrEqual(8)
    expect(data.filter(({ success }) => success === null).length).toBeGreaterThanOrEqual(1)
  } finally {
    await fixture.close()
  }
})
