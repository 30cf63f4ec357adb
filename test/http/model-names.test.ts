import { afterAll, beforeAll, expect, test } from 'vitest'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => plainConfiguration(upstream.baseUrl('m')))
})
afterAll(() => fixture?.close())

const NAMES = [
  '../m',
  '%2e%2e/m',
  'm?x=1',
  'm#',
  '@evil.example',
  'm\r\nx-evil: 1',
  'm\0',
  ' m',
  'm ',
  'M',
  '\u202em',
  '模型',
  'constructor',
  '__proto__',
  'hasOwnProperty',
  'x'.repeat(10_000),
]

test.each(NAMES)(
  'the unknown model name %j is refused without an upstream call, and shortened in the error',
  async (name) => {
    fixture.upstream.script('m', { kind: 'whole' })
    const answer = await fixture.chat('ann', ask(name))
    expect(answer.status, answer.text.slice(0, 300)).toBeOneOf([400, 503])
    const { error } = answer.json()
    expect(error.code).toBeOneOf(['model_not_found', 'model_price_error', 'invalid_request'])
    expect(error.message.length).toBeLessThan(600)
    expect(answer.headers).not.toHaveProperty('x-evil')
    expect(fixture.upstream.received('m')).toHaveLength(0)
  },
)
