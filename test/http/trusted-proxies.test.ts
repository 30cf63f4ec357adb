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
  test("a key's address list is checked against the address that a trusted proxy forwards", async () => {
    expect(await forwarded('10.1.2.3')).toBe(200)
    expect(await forwarded('9.9.9.9')).toBe(403)
    expect(await forwarded('2001:db8::7')).toBe(200)
    expect(await forwarded('10.1.2.3:51008')).toBe(200)
    expect(await forwarded('9.9.9.9:51008')).toBe(403)
    expect(await forwarded('[2001:db8::7]:64828')).toBe(200)
  })
  test("the client's address is the last forwarded one that is not a trusted proxy's, whatever the client itself sent", async () => {
    expect(await forwarded('10.1.2.3, 9.9.9.9')).toBe(403)
    expect(await forwarded('9.9.9.9, 10.1.2.3')).toBe(200)
    expect(await forwarded('9.9.9.9, 10.1.2.3, 172.16.5.5')).toBe(200)
    expect(await forwarded('10.1.2.3, 9.9.9.9, 172.16.5.5')).toBe(403)
  })
  test('a call with an invalid forwarded address from a trusted proxy is a 403 for a key with an address list', async () => {
    expect(await forwarded('10.0.0.1.evil')).toBe(403)
    await expect.poll(() => fixture.gateway.logs()).toContain('"form":"99.9.9.9.aaaa"')
  })
  test("without a forwarded address, a key's address list is checked against the trusted proxy's own address", async () => {
    expect((await fixture.chat('office', ask('m'))).status).toBe(403)
  })
})
