import { expect, test } from 'vitest'
import { AnswerMetadata } from './answer-metadata.ts'

test('the recorded id and model of an answer are the first ones that it states', () => {
  const names = new AnswerMetadata()
  names.note(undefined, null)
  names.note('chatcmpl-1', 'm-2030')
  names.note('chatcmpl-2', 'other')
  expect(names).toMatchObject({ id: 'chatcmpl-1', model: 'm-2030' })
})

test('a value that is not a text of 1 to 256 characters is not recorded as the id or model of an answer', () => {
  const names = new AnswerMetadata()
  for (const value of [7, {}, '', 'x'.repeat(257)]) names.note(value, value)
  expect(names).toMatchObject({ id: undefined, model: undefined })
})

test('the recorded finish reasons are in the order of the choices, and texts with spaces are ignored', () => {
  const names = new AnswerMetadata()
  names.finish(2, 'length')
  names.finish(0, 'stop')
  names.finish(0, 'a sentence that the model wrote')
  names.finish(128, 'stop')
  names.finish(-1, 'stop')
  expect(names.reasons).toEqual(['stop', undefined, 'length'])
})
