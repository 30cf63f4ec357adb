import { pino } from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { FailureLog, type UpstreamFailure } from './failure-log.ts'
import { ComparedRequestTexts } from './provider-messages.ts'

let lines: Record<string, unknown>[]
let failures: FailureLog
beforeEach(() => {
  lines = []
  failures = new FailureLog(
    pino(
      { level: 'warn' },
      { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    ),
  )
})

const CALL = {
  incoming: { id: 'id' },
  plan: { request: { model: 'm' } },
  words: new ComparedRequestTexts(() => ({
    body: Buffer.from('{}'),
    shapeOf: () => undefined,
    fields: [],
    url: '/',
  })),
}
const channel = channelOf({ name: 'a', keys: ['one', 'two'] })

function failureOf(fields: Partial<UpstreamFailure> = {}): UpstreamFailure {
  return {
    call: CALL,
    channel,
    key: { value: 'two' },
    cause: 'status 500',
    status: 500,
    upstreamMessage: 'no',
    ...fields,
  }
}

describe('warnings about upstreams that failed', () => {
  test('at most five warnings of failed attempts a minute are logged per channel and cause, and then how many were left out', () => {
    for (let i = 0; i < 8; i++) failures.report(failureOf(), 'next key', i * 1_000)
    failures.report(failureOf({ cause: 'status 503' }), 'gave up', 8_000)
    failures.report(failureOf({ channel: channelOf({ name: 'b' }) }), 'gave up', 8_000)
    expect(lines).toHaveLength(7)
    failures.tick(59_999)
    expect(lines).toHaveLength(7)
    failures.tick(60_000)
    expect(lines.slice(7)).toMatchObject([{ channel: 'a', cause: 'status 500', suppressed: 3 }])
    failures.report(failureOf(), 'next key', 60_000)
    expect(lines).toHaveLength(9)
    failures.close()
    expect(lines).toHaveLength(9)
  })

  test('a warning of a failed attempt names the index of the upstream key, and none if the channel has no key', () => {
    failures.report(failureOf(), 'next key', 0)
    failures.report(failureOf({ key: { value: '' } }), 'next key', 0)
    expect(lines.map(({ key }) => key)).toEqual([2, undefined])
  })
})
