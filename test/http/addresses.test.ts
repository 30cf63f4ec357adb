import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import type { FullResponse } from '../fixtures/client.ts'

const LISTS: Record<string, string | null> = {
  none: null,
  blank: '',
  exact: '127.0.0.1',
  network: '127.0.0.0/8',
  several: '10.0.0.0/8\n192.168.1.7\n127.0.0.1/32',
  spaced: '  127.0.0.1  \r\n\r\n10.0.0.1',
  mapped: '::ffff:127.0.0.1',
  elsewhere: '10.0.0.0/8',
  sibling: '127.0.0.2',
  sixth: '2001:db8::/32',
  loopback6: '::1',
  // The configuration refuses such a list, so it is written to the database directly, below.
  broken: '127.0.0.1',
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [
        ROOT,
        user(
          2,
          'ann',
          Object.entries(LISTS).map(([key, list]) => token(key, { allow_ips: list })),
        ),
      ],
    }),
    { host: '::' },
  )
  databaseOf(fixture.gateway.dataDir).write(
    'update tokens set allow_ips = ? where name = ?',
    '127.0.0.1\nnonsense',
    'token-broken',
  )
})
afterAll(() => fixture?.close())

const from = (key: string, host: string, headers: Record<string, string> = {}) =>
  fixture.chat(key, ask('m'), { host, headers })

function refused(answer: FullResponse): void {
  expect(answer.status, answer.text).toBe(403)
  expect(answer.json().error).toMatchObject({ type: 'permission_error' })
}

describe('an allow-list of addresses', () => {
  // The gateway listens on ::, so that it sees an IPv4 peer as ::ffff:127.0.0.1.
  test.each(['none', 'blank', 'exact', 'network', 'several', 'spaced', 'mapped'])(
    'the allow-list "%s" of an API key admits a client at 127.0.0.1',
    async (key) => expect((await from(key, '127.0.0.1')).status).toBe(200),
  )
  test.each(['elsewhere', 'sibling', 'sixth', 'loopback6'])(
    'the allow-list "%s" of an API key refuses a client at 127.0.0.1',
    async (key) => refused(await from(key, '127.0.0.1')),
  )
  test('an invalid allow-list of an API key refuses every address', async () =>
    refused(await from('broken', '127.0.0.1')))
  test('the allow-list of an API key supports IPv6 addresses', async () => {
    expect((await from('loopback6', '::1')).status).toBe(200)
    refused(await from('sixth', '::1'))
    refused(await from('network', '::1'))
  })
  test('a call refused by the allow-list of its API key does not reach the upstream', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    await from('elsewhere', '127.0.0.1')
    expect(fixture.upstream.received('m')).toHaveLength(0)
  })
})

test('X-Forwarded-For of an untrusted peer is ignored by the allow-list of an API key', async () => {
  refused(await from('elsewhere', '127.0.0.1', { 'x-forwarded-for': '10.1.2.3' }))
  expect((await from('exact', '127.0.0.1', { 'x-forwarded-for': '10.1.2.3' })).status).toBe(200)
})
