import { expect, test } from 'vitest'
import { newestModel } from './welcome.ts'

test.each([
  [['gpt-4.1', 'gpt-5.6', 'gpt-6-astra', 'gpt-6-sol', 'o3'], 'gpt-6-sol'],
  [['claude-opus-4-8', 'claude-opus-5', 'claude-opus-5-5', 'claude-sonnet-5'], 'claude-opus-5-5'],
  [['gemini-2.5-pro', 'gemini-3.8-flash', 'gemini-3.1-pro-preview'], 'gemini-3.8-flash'],
  [['codestral-2508', 'mixtral-8x22b', 'ministral-8b', 'mistral-medium-3.5'], 'mistral-medium-3.5'],
  [['demo-chat', 'demo-reason'], 'demo-chat'],
])('the welcome text suggests, of the models %j, the newest: %s', (models, newest) => {
  expect(newestModel(models)).toBe(newest)
})

test('the welcome text suggests no model if the list of models is empty', () => {
  expect(newestModel([])).toBeUndefined()
})
