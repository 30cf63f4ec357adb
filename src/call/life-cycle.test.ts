import type { Conversation } from '@sluice/wire/conversation'
import { expect, test } from 'vitest'
import type { Caller } from '../accounts/authentication/caller.ts'
import type { Endpoint } from '../domain/endpoints.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Settings } from '../domain/settings.ts'
import type { AdmittedRequest, ReadRequest } from './answer-request.ts'
import type { Call } from './call.ts'
import { sameForAll } from './dialects/decoded-conversation.ts'
import type { RequestReaderContext } from './dialects/dialect.ts'
import { type ReferringRequest, UNRESOLVED } from './dialects/references.ts'
import { LifeCycle } from './life-cycle.ts'
import type { CallFeature, PlannedCall } from './feature.ts'
import type { IncomingCall } from './incoming-call.ts'
import type { Plans } from './plan.ts'

const callOf = (endpoint: string, settings: object, caller = {}): PlannedCall =>
  ({ dialect: { endpoint }, settings, caller }) as unknown as PlannedCall
const CALL = {} as Call
const INCOMING = { id: 'as it came' } as IncomingCall

test('whether a feature concerns an endpoint is decided once while the settings are in force', () => {
  const asked: string[] = []
  const lifeCycle = new LifeCycle([
    {
      concerns(_, endpoint) {
        asked.push(endpoint)
        return true
      },
    },
  ])
  const settings = {}
  for (const endpoint of ['chat', 'messages', 'chat']) lifeCycle.begin(callOf(endpoint, settings))
  lifeCycle.begin(callOf('chat', {}))
  expect(asked).toEqual(['chat', 'messages', 'chat'])
})

test('whether a feature concerns an API key is decided once for its endpoint and settings', () => {
  const asked: unknown[] = []
  const closed: unknown[] = []
  const lifeCycle = new LifeCycle([
    {
      concerns: (_, endpoint) => (caller) => {
        asked.push([endpoint, caller.token.name])
        return caller.token.name === 'concerned'
      },
      closed: () => void closed.push('keys'),
    },
    { concerns: () => false, closed: () => void closed.push('none') },
    { closed: () => void closed.push('all') },
  ])
  const settings = {}
  const [concerned, other] = [{ token: { name: 'concerned' } }, { token: { name: 'other' } }]
  for (const caller of [concerned, { ...concerned }, other, other])
    lifeCycle.begin(callOf('chat', settings, caller)).closed(CALL)
  lifeCycle.begin(callOf('messages', settings, other))
  lifeCycle.begin(callOf('chat', {}, other))
  expect(asked).toEqual([
    ['chat', 'concerned'],
    ['chat', 'other'],
    ['messages', 'other'],
    ['chat', 'other'],
  ])
  expect(closed).toEqual(['keys', 'all', 'keys', 'all', 'all', 'all'])
})

test('only features that take part in a call are called at its moments, each with its own state', () => {
  const called: unknown[] = []
  const feature = (name: string, state: string | undefined): CallFeature<string> => ({
    begin: () => state,
    closed: (own) => void called.push([name, own]),
  })
  const everywhere: CallFeature = { closed: () => void called.push('everywhere') }
  const elsewhere: CallFeature = { concerns: () => false, closed: () => void called.push('elsewhere') }
  const features: CallFeature<unknown>[] = [
    feature('a', 'A'),
    everywhere,
    feature('b', undefined),
    elsewhere,
    feature('c', 'C'),
  ]
  new LifeCycle(features).begin(callOf('chat', {})).closed(CALL)
  expect(called).toEqual([['a', 'A'], 'everywhere', ['c', 'C']])
})

test('a feature gets the plans as earlier features have changed them, whether or not at once', async () => {
  const adding = (name: string, isLater: boolean): CallFeature => ({
    plan(_, plans) {
      const changed = [...plans, name] as unknown as Plans
      return isLater ? Promise.resolve(changed) : changed
    },
  })
  const of = (...features: CallFeature[]) =>
    new LifeCycle(features).begin(callOf('chat', {})).plan([] as never)
  expect(of(adding('a', false), adding('b', false))).toEqual(['a', 'b'])
  const later = of(adding('a', true), adding('b', false), adding('c', true))
  expect(later).toBeInstanceOf(Promise)
  expect(await later).toEqual(['a', 'b', 'c'])
})

test('a request is read by the first feature that concerns its endpoint, or as it is', async () => {
  const resolving = (name: string, endpoint: string): CallFeature => ({
    concerns: (_, called) => called === endpoint,
    refer: () => Promise.resolve({ ...UNRESOLVED, dropped: [name] }),
    decoded: (conversation) => Promise.resolve({ ...sameForAll(conversation), origin: name }),
  })
  const lifeCycle = new LifeCycle([resolving('a', 'responses'), resolving('b', 'responses')])
  const conversation = {} as Conversation
  const readAt = async (endpoint: Endpoint): Promise<unknown[]> => {
    const reading = lifeCycle.reading({} as Settings, {} as Caller, endpoint)
    const { dropped } = await reading.refer({} as ReferringRequest, {} as RequestReaderContext)
    const decoded = await reading.decoded(conversation, new Set(), {} as RequestReaderContext)
    const [same] = decoded.conversationsFor({} as Channel, 'chat')
    return [dropped, decoded.origin, same?.conversation === conversation]
  }
  expect(await readAt('responses')).toEqual([['a'], 'a', true])
  expect(await readAt('chat')).toEqual([[], undefined, true])
})

test('a feature that answers a request has the state of the call that it makes, and no part in other calls', async () => {
  const called: unknown[] = []
  const answering = (name: string): CallFeature<string> => ({
    answer: (_, incoming, ways) => ways.make(incoming, `state of ${name}`),
    closed: (state) => void called.push([name, state]),
  })
  const lifeCycle = new LifeCycle([answering('a'), answering('b')] as CallFeature<unknown>[])
  const call = callOf('chat', {})
  await lifeCycle.answer(call as unknown as AdmittedRequest, INCOMING, {
    admit: async (_request, _incoming, known) => lifeCycle.begin(call, known).closed(CALL),
  })
  lifeCycle.begin(call).closed(CALL)
  expect(called).toEqual([
    ['a', 'state of a'],
    ['b', 'state of b'],
  ])
})

test('a feature that answers a request without making its call leaves nothing to later features', async () => {
  const called: string[] = []
  const first: CallFeature = {
    read: () => async (request, next) => {
      called.push('first')
      await next({ ...request.incoming, id: 'changed' })
    },
  }
  const second: CallFeature = {
    read: () => async (request) => void called.push(`second, ${request.incoming.id}`),
  }
  const answer = new LifeCycle([first, second]).read(INCOMING, {} as never)
  await answer?.({ incoming: INCOMING } as ReadRequest, async () => void called.push('the relay'))
  expect(called).toEqual(['first', 'second, changed'])
})
