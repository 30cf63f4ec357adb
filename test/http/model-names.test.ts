import { afterAll, beforeAll, expect, test } from 'vitest'
import { plainConfiguration } from '../equipment/configuration.ts'
import { ask, type Stage, setStage } from '../equipment/stage.ts'

let stage: Stage
beforeAll(async () => {
  stage = await setStage((upstream) => plainConfiguration(upstream.baseUrl('m')))
})
afterAll(() => stage?.close())

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

test.each(NAMES)('the model name %j is unknown, its echo short, and no upstream is called', async (name) => {
  stage.upstream.script('m', { kind: 'whole' })
  const answer = await stage.chat('ann', ask(name))
  expect(answer.status, answer.text.slice(0, 300)).toBeOneOf([400, 503])
  const { error } = answer.json()
  expect(error.code).toBeOneOf(['model_not_found', 'model_price_error', 'invalid_request'])
  expect(error.message.length).toBeLessThan(600)
  expect(answer.headers).not.toHaveProperty('x-evil')
  expect(stage.upstream.received('m')).toHaveLength(0)
})
