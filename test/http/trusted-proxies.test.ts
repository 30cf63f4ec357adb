import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { trusted_proxies: ['127.0.0.1/32', '172.16.0.0/12'] },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('office', { allow_ips: '10.0.0.0/8\n2001:db8::/32' })])],
  }))
})
afterAll(() => fixture?.close())

const forwarded = async (value: string): Promise<number> =>
  (await fixture.chat('office', ask('m'), { headers: { 'x-forwarded-for': value } })).status

describe('behind a trusted proxy', () => {
  test('behind a trusted proxy the forwarded address counts', async () => {
    expect(await forwarded('10.1.2.3')).toBe(200)
    expect(await forwarded('9.9.9.9')).toBe(403)
    expect(await forwarded('2001:db8::7')).toBe(200)
  })
  test('behind trusted proxies the last address that is not a trusted proxy counts, whatever the client sent', async () => {
    expect(await forwarded('10.1.2.3, 9.9.9.9')).toBe(403)
    expect(await forwarded('9.9.9.9, 10.1.2.3')).toBe(200)
    expect(await forwarded('9.9.9.9, 10.1.2.3, 172.16.5.5')).toBe(200)
    expect(await forwarded('10.1.2.3, 9.9.9.9, 172.16.5.5')).toBe(403)
  })
  test('behind a trusted proxy an invalid forwarded address is denied', async () =>
    expect(await forwarded('10.0.0.1.evil')).toBe(403))
  test("behind a trusted proxy without the header the proxy's own address counts", async () => {
    expect((await fixture.chat('office', ask('m'))).status).toBe(403)
  })
})
