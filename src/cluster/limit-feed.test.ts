import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SECRETS } from '../../test/stores/rows.ts'
import { deriveSecrets, seal } from '../store/secrets.ts'
import type { Listener } from '../store/postgres/announcements.ts'
import { KeyRings } from '../upstreams/key-ring.ts'
import { ProviderLimits } from '../upstreams/provider-limits.ts'
import { LimitFeed } from './limit-feed.ts'

const NOW = Date.parse('2026-11-25T12:00:00Z')
const CHANNEL = { name: 'main', keys: ['sk-upstream-one', 'sk-upstream-two'] }
const [ONE] = CHANNEL.keys as [string, string]
const PLACE = { table: 'limits of providers', row: 'sluice:test' }

/** Texts that every node receives, as over Redis. */
class Bus {
  readonly texts: string[] = []
  readonly #listeners = new Set<Listener>()

  isDown = false

  /** The node that joined at this position has a new connection. */
  reconnect(position: number): void {
    ;[...this.#listeners][position]?.connected?.()
  }

  /** The first announcement of a node. */
  firstOf(node: string): string {
    return this.texts.find((text) => text.startsWith(`limits ${node} `)) ?? ''
  }

  readonly announce = (text: string): Promise<void> => {
    if (this.isDown) return Promise.reject(new Error('not connected'))
    this.texts.push(text)
    for (const listener of this.#listeners) listener.received(text)
    return Promise.resolve()
  }

  readonly listen = (listener: Listener): (() => void) => {
    this.#listeners.add(listener)
    listener.connected?.()
    return () => void this.#listeners.delete(listener)
  }
}

const feeds: LimitFeed[] = []
beforeEach(() => void vi.useFakeTimers({ now: NOW }))
afterEach(() => {
  for (const feed of feeds.splice(0)) feed.close()
  vi.useRealTimers()
})

function nodeOn(bus: Bus, node: string, channels = [CHANNEL]) {
  const limits = new ProviderLimits()
  const keyRings = new KeyRings()
  let untrusted = 0
  feeds.push(
    new LimitFeed({
      node,
      namespace: 'sluice:test',
      secrets: SECRETS,
      announcer: bus,
      channels: () => channels,
      limits,
      keyRings,
      onUntrusted: () => (untrusted += 1),
    }),
  )
  return {
    untrusted: () => untrusted,
    limits,
    keyRings,
    state: (remaining: number, key = ONE): void =>
      limits.begin(CHANNEL, { value: key }, 'm', { tokens: 1 })({
        retryAfter: undefined,
        headers: {
          'x-ratelimit-limit-requests': '1000',
          'x-ratelimit-remaining-requests': String(remaining),
          'x-ratelimit-reset-requests': '10m0s',
        },
      }),
    left: (key = ONE) => limits.ofChannel('main').get(key)?.requests?.remaining,
    rests: (key = ONE) => keyRings.rests.restOf('main', key, '', performance.now())?.cause,
  }
}

/** The first key of the channel, for all models. */
const OF_ONE = { channel: 'main', key: ONE, model: '' }

const pass = (ms = 150): void => void vi.advanceTimersByTime(ms)

describe('what a provider stated to one node', () => {
  test("a provider's limit stated to one node reaches the others in 100 ms, in a message without names or keys in clear", () => {
    const bus = new Bus()
    const [a, b] = [nodeOn(bus, 'a'), nodeOn(bus, 'b')]
    a.state(37)
    expect(b.left()).toBeUndefined()
    pass(100)
    expect(b.left()).toBe(37)
    expect(bus.texts.join('\n')).not.toMatch(/main|upstream|one/)
  })

  test("a provider's newly stated limit replaces the earlier one on every node, and a repeated older message is ignored", () => {
    const bus = new Bus()
    const [a, b] = [nodeOn(bus, 'a'), nodeOn(bus, 'b')]
    a.state(0)
    pass()
    const old = bus.firstOf('a')
    a.state(500)
    pass()
    expect(b.left()).toBe(500)
    void bus.announce(old)
    expect(b.left()).toBe(500)
    b.state(499)
    void bus.announce(old)
    expect([a.left(), b.left()]).toEqual([500, 499])
    pass()
    expect(a.left()).toBe(499)
  })

  test('a node that joins is sent the limits that providers stated, and a message that is half a minute old is ignored', () => {
    const bus = new Bus()
    const a = nodeOn(bus, 'a')
    a.state(0)
    pass()
    const old = bus.firstOf('a')
    const b = nodeOn(bus, 'b')
    pass(2_000)
    expect(b.left()).toBe(0)
    pass(31_000)
    feeds.shift()?.close()
    const late = nodeOn(bus, 'late', [CHANNEL])
    feeds[0]?.close()
    void bus.announce(old)
    expect(late.left()).toBeUndefined()
  })

  test('several nodes that join at once are each sent the limits that providers stated', () => {
    const bus = new Bus()
    const a = nodeOn(bus, 'a')
    a.state(3)
    pass()
    const b = nodeOn(bus, 'b')
    pass(1_000)
    const c = nodeOn(bus, 'c')
    pass(2_000)
    expect([b.left(), c.left()]).toEqual([3, 3])
  })

  test('a node that reconnects sends the others the provider limits that were stated to it meanwhile', () => {
    const bus = new Bus()
    const [a, b] = [nodeOn(bus, 'a'), nodeOn(bus, 'b')]
    a.state(3)
    pass(2_000)
    bus.isDown = true
    a.state(2)
    pass()
    bus.isDown = false
    expect(b.left()).toBe(3)
    bus.reconnect(0)
    pass(2_000)
    expect(b.left()).toBe(2)
  })

  test('a limit for a model whose name is too long is not announced to other nodes, but other limits and rests are', () => {
    const bus = new Bus()
    const [a, b] = [nodeOn(bus, 'a'), nodeOn(bus, 'b')]
    const head = { retryAfter: undefined, headers: { 'x-ratelimit-remaining-requests': '5' } }
    a.limits.begin(CHANNEL, { value: ONE }, 'm'.repeat(301), { tokens: 1 })(head)
    a.state(37)
    const failure = { kind: 'key_refused', cause: 'x'.repeat(301) } as const
    a.keyRings.rests.start(OF_ONE, failure, performance.now(), performance.now())
    pass()
    expect([...b.limits.noted()].map(({ model }) => model)).toEqual(['m'])
    expect(b.rests()).toBe('x'.repeat(300))
  })

  test('an announced limit of a key or channel that a node has not configured is ignored by this node', () => {
    const bus = new Bus()
    const a = nodeOn(bus, 'a')
    const [b, c] = [
      nodeOn(bus, 'b', [{ ...CHANNEL, keys: ['sk-upstream-two'] }]),
      nodeOn(bus, 'c', [{ ...CHANNEL, name: 'other' }]),
    ]
    a.state(37)
    pass()
    expect([b, c].map(({ limits }) => [...limits.noted()])).toEqual([[], []])
  })
})

describe('a rest of a key', () => {
  const RESTS = { kind: 'limited', cause: 'status 429', statedMs: 60_000 } as const
  const start = ({ keyRings }: ReturnType<typeof nodeOn>): void =>
    keyRings.rests.start(OF_ONE, RESTS, performance.now(), performance.now())

  test("the rest of a channel's key and its end reach all nodes, and a repeated announcement changes neither", () => {
    const bus = new Bus()
    const [a, b] = [nodeOn(bus, 'a'), nodeOn(bus, 'b')]
    start(a)
    pass()
    expect(b.rests()).toBe('status 429')
    expect(b.rests(CHANNEL.keys[1])).toBeUndefined()
    const began = bus.firstOf('a')
    b.keyRings.rests.endOfKey('main', ONE)
    pass()
    expect(a.rests()).toBeUndefined()
    void bus.announce(began)
    expect([a.rests(), b.rests()]).toEqual([undefined, undefined])
  })

  test("the rest of a channel's key reaches nodes whose clocks were all set back", () => {
    const bus = new Bus()
    const [a, b] = [nodeOn(bus, 'a'), nodeOn(bus, 'b')]
    start(a)
    pass()
    a.keyRings.rests.endOfKey('main', ONE)
    pass()
    vi.setSystemTime(NOW - 86_400_000)
    start(a)
    pass()
    expect(b.rests()).toBe('status 429')
  })

  test("the rest of a channel's key for one model reaches all nodes for this model alone", () => {
    const bus = new Bus()
    const [a, b] = [nodeOn(bus, 'a'), nodeOn(bus, 'b')]
    a.keyRings.rests.start({ ...OF_ONE, model: 'm' }, RESTS, performance.now(), performance.now())
    pass()
    const rests = (model: string): boolean =>
      b.keyRings.rests.isResting('main', ONE, model, performance.now())
    expect([rests('m'), rests('n')]).toEqual([true, false])
  })

  test("the rest of a channel's key is not ended by the answer to a request that was sent before the rest", () => {
    const node = nodeOn(new Bus(), 'a')
    const { keyRings, rests } = node
    const sentMs = performance.now()
    pass()
    start(node)
    keyRings.rests.succeeded(OF_ONE, sentMs)
    expect(rests()).toBe('status 429')
    keyRings.rests.succeeded(OF_ONE, performance.now())
    expect(rests()).toBeUndefined()
  })

  test("the rest of a channel's key lasts five minutes at most, whatever another node announces", () => {
    const { keyRings, rests } = nodeOn(new Bus(), 'a')
    const nowMs = performance.now()
    const rest = { kind: 'limited', endMs: nowMs + 9e9, sinceMs: NOW, cause: 'x' } as const
    keyRings.rests.apply({ ...OF_ONE, rest }, nowMs)
    pass(299_000)
    expect(rests()).toBe('x')
    pass(2_000)
    expect(rests()).toBeUndefined()
  })
})

describe('an announcement that changes nothing', () => {
  /** What a node knows after an announcement with this sealed text, made from a valid one. */
  function knownAfter(change: (sealed: string, text: (news: unknown[]) => string) => string) {
    const bus = new Bus()
    const [a, b] = [nodeOn(bus, 'a'), nodeOn(new Bus(), 'b')]
    const hears = new Bus()
    const c = nodeOn(hears, 'c')
    a.state(0)
    pass()
    const said = bus.firstOf('a')
    const sealed = said.split(' ')[2] ?? ''
    const text = (news: unknown[]): string => seal(SECRETS, JSON.stringify(news), PLACE)
    void hears.announce(`limits a ${change(sealed, text)}`)
    expect(b.left()).toBeUndefined()
    return { left: c.left(), rests: c.rests(), untrusted: c.untrusted() }
  }

  test("a node applies the limit in another node's sealed message if the message arrives unchanged", () => {
    expect(knownAfter((sealed) => sealed)).toEqual({ left: 0, rests: undefined, untrusted: 0 })
  })

  const OTHER = deriveSecrets('another secret of sixteen')
  test.each<[string, (sealed: string) => string]>([
    [
      'with another character',
      (sealed) => sealed.slice(0, -3) + (sealed.at(-3) === 'A' ? 'B' : 'A') + sealed.slice(-2),
    ],
    ['that is cut short', (sealed) => sealed.slice(0, 60)],
    ['of another secret', () => seal(OTHER, '[]', PLACE)],
    ['of another gateway', () => seal(SECRETS, JSON.stringify([NOW, []]), { ...PLACE, row: 'sluice:other' })],
  ])('a node ignores and counts an announcement of provider limits %s', (_, change) => {
    expect(knownAfter(change)).toEqual({ left: undefined, rests: undefined, untrusted: 1 })
  })

  test.each<[string, (sealed: string, text: (news: unknown[]) => string) => string]>([
    ['of no JSON', () => seal(SECRETS, 'x', PLACE)],
    ['of another form', (_, text) => text([NOW, [['limit', 'main', 'x', 'm', NOW]]])],
    [
      'of a negative remainder',
      (_, text) => text([NOW, [['limit', 'main', 'x', 'm', NOW, null, [1, -1, null], null]]]),
    ],
    [
      'with 17 news',
      (_, text) =>
        text([NOW, Array.from({ length: 17 }, () => ['rest', 'main', 'x', '', 'limited', 1, 1, 1, ''])]),
    ],
  ])('a node ignores an announcement of provider limits %s', (_, change) => {
    expect(knownAfter(change)).toEqual({ left: undefined, rests: undefined, untrusted: 0 })
  })
})

test('a thousand provider limits are announced to other nodes within seconds, in messages of at most 7,900 bytes', () => {
  const bus = new Bus()
  const [a, b] = [nodeOn(bus, 'a'), nodeOn(bus, 'b')]
  for (let index = 0; index < 1_000; index += 1)
    a.limits.begin(CHANNEL, { value: ONE }, `model-${'x'.repeat(200)}-${index}`, { tokens: 1 })({
      retryAfter: undefined,
      headers: { 'x-ratelimit-remaining-requests': '5', 'x-ratelimit-remaining-tokens': '5' },
    })
  pass(5_000)
  expect([...b.limits.noted()]).toHaveLength(1_000)
  expect(Math.max(...bus.texts.map((text) => text.length))).toBeLessThan(7_900)
})
