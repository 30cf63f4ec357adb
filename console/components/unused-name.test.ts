import { expect, test } from 'vitest'
import { unusedName } from './unused-name.ts'

test('the suggested name of a channel gets the next free number if the name is taken', () => {
  expect(unusedName('openai', new Set())).toBe('openai')
  expect(unusedName('openai', new Set(['openai', 'openai-2', 'openai-4']))).toBe('openai-3')
})
