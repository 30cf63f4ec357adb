import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, retryWhileShed } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask } from '../fixtures/fixture.ts'

/** The trusted proxies in each case; the peer is 127.0.0.1 or ::1. */
const PEERS = { nobody: [], 'other proxies': ['10.0.0.0/8', '::2'], 'the peer': ['127.0.0.1', '::1/128'] }

const LISTS = {
  here: '127.0.0.1\n::1',
  ten: '10.0.0.0/8',
  six: '2001:db8::/32',
  mapped: '::ffff:10.0.0.0/104',
}

let upstream: ScriptedUpstream
let gateways: Record<keyof typeof PEERS, RunningGateway>
beforeAll(async () => {
  upstream = await startUpstream()
  const started = async (trusted: readonly string[]): Promise<RunningGateway> =>
    startGateway({
      host: '::',
      config: {
        options: { trusted_proxies: trusted },
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
      },
    })
  gateways = {
    nobody: await started(PEERS.nobody),
    'other proxies': await started(PEERS['other proxies']),
    'the peer': await started(PEERS['the peer']),
  }
})
afterAll(async () => {
  for (const gateway of Object.values(gateways ?? {})) await gateway.discard()
  await upstream?.stop()
})

type Key = keyof typeof LISTS

/** The keys that are admitted. */
async function letIn(
  peer: keyof typeof PEERS,
  headers: Record<string, string>,
  host = '127.0.0.1',
): Promise<Key[]> {
  const keys: Key[] = ['here', 'ten', 'six', 'mapped']
  const answers = await Promise.all(
    keys.map((key) => retryWhileShed(() => call(gateways[peer].url, ask('m'), { key, headers, host }))),
  )
  for (const { status } of answers) expect(status).toBeOneOf([200, 403])
  return keys.filter((_, index) => answers[index]?.status === 200)
}

const TEN: Key[] = ['ten', 'mapped']
const HERE: Key[] = ['here']

/**
 * Headers, and the keys that each admits where the peer is trusted; from an untrusted peer, the header has no
 * effect.
 */
const HEADERS: readonly (readonly [name: string, value: string, trusted: Key[]])[] = [
  ['x-forwarded-for', '10.1.2.3', TEN],
  ['x-forwarded-for', ' 10.1.2.3 ', TEN],
  ['x-forwarded-for', '::ffff:10.1.2.3', TEN],
  ['x-forwarded-for', '2001:db8::7', ['six']],
  ['x-forwarded-for', '2001:0DB8:0:0:0:0:0:7', ['six']],
  ['x-forwarded-for', '9.9.9.9', []],
  ['x-forwarded-for', '10.1.2.3, 9.9.9.9', []],
  ['x-forwarded-for', '9.9.9.9, 10.1.2.3', TEN],
  ['x-forwarded-for', '10.1.2.3, 127.0.0.1', TEN],
  [
    'x-forwarded-for',
    Array.from({ length: 100 }, () => '9.9.9.9')
      .concat('10.1.2.3')
      .join(', '),
    TEN,
  ],
  [
    'x-forwarded-for',
    Array.from({ length: 100 }, () => '10.1.2.3')
      .concat('9.9.9.9')
      .join(','),
    [],
  ],
  ['x-forwarded-for', Array.from({ length: 100 }, () => '127.0.0.1').join(','), HERE],
  // An unreadable address is ignored together with everything before it: the address of the last trusted
  // proxy counts.
  ['x-forwarded-for', '', HERE],
  ['x-forwarded-for', '10.1.2.3,', HERE],
  ['x-forwarded-for', '10.1.2.3, unknown', HERE],
  ['x-forwarded-for', '10.1.2.3:1234', TEN],
  ['x-forwarded-for', '[2001:db8::7]:1234', ['six']],
  ['x-forwarded-for', '[2001:db8::7]', ['six']],
  ['x-forwarded-for', '10.1.2.3:65536', HERE],
  ['x-forwarded-for', '[10.1.2.3]:1234', HERE],
  ['x-forwarded-for', '10.1.2.3/8', HERE],
  ['x-forwarded-for', '010.1.2.3', HERE],
  ['x-forwarded-for', '0x0a.1.2.3', HERE],
  ['x-forwarded-for', '10.1', HERE],
  ['x-forwarded-for', '167838211', HERE],
  ['x-forwarded-for', '10.1.2.3%00', HERE],
  ['x-forwarded-for', '10.1.2.3;9.9.9.9', HERE],
  ['x-forwarded-for', 'for=10.1.2.3', HERE],
  ['x-forwarded-for', '"10.1.2.3"', HERE],
  ['x-forwarded-for', 'fe80::1%eth0', []],
  // Header names that other software trusts.
  ...[
    'x-real-ip',
    'forwarded',
    'cf-connecting-ip',
    'true-client-ip',
    'x-client-ip',
    'client-ip',
    'x-cluster-client-ip',
    'x-forwarded',
    'forwarded-for',
    'x-originating-ip',
    'x-remote-ip',
    'x-remote-addr',
    'via',
    'fastly-client-ip',
  ].map((name) => [name, name === 'forwarded' ? 'for=10.1.2.3' : '10.1.2.3', HERE] as const),
]

describe.each(HEADERS)('%s: %s', (name, value, trusted) => {
  test("behind a trusted proxy X-Forwarded-For gives the client's address; an unreadable entry is ignored with all before it", async () => {
    expect(await letIn('the peer', { [name]: value })).toEqual(trusted)
  })
  test('a forwarding header such as X-Forwarded-For has no effect where the peer is not a trusted proxy', async () => {
    expect(await letIn('nobody', { [name]: value })).toEqual(HERE)
    expect(await letIn('other proxies', { [name]: value })).toEqual(HERE)
    expect(await letIn('nobody', { [name]: value }, '::1')).toEqual(HERE)
  })
})

test('repeated X-Forwarded-For headers are read as one list', async () => {
  const headers = { 'x-forwarded-for': ['10.1.2.3', '9.9.9.9'] } as unknown as Record<string, string>
  expect(await letIn('the peer', headers)).toEqual([])
  const turned = { 'x-forwarded-for': ['9.9.9.9', '10.1.2.3'] } as unknown as Record<string, string>
  expect(await letIn('the peer', turned)).toEqual(TEN)
})

test('a proxy with an IPv6 address is trusted where the list of trusted proxies has that address', async () => {
  expect(await letIn('the peer', { 'x-forwarded-for': '10.1.2.3' }, '::1')).toEqual(TEN)
  expect(await letIn('other proxies', { 'x-forwarded-for': '10.1.2.3' }, '::1')).toEqual(HERE)
})
