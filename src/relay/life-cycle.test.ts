import { expect, test } from 'vitest'
import type { Call } from './call.ts'
import { type CallFeature, LifeCycle, type PlannedCall } from './life-cycle.ts'
import type { Plans } from './plan.ts'

const callOf = (endpoint: string, settings: object): PlannedCall =>
  ({ dialect: { endpoint }, settings }) as unknown as PlannedCall
const CALL = {} as Call

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
