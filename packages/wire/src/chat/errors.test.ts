import { expect, test } from 'vitest'
import { chatErrorBody, chatErrorFrame } from './errors.ts'

const parts = { type: 'api_error', code: 'internal_error', message: 'It "broke"\n' }

test('the error envelope of chat is error with code, message and type', () => {
  expect(JSON.parse(chatErrorBody(parts).toString())).toEqual({ error: parts })
})

test('the error envelope in a chat stream is one data line', () => {
  const frame = chatErrorFrame(parts).toString()
  expect(frame).toMatch(/^data: [^\n]+\n\n$/)
  expect(JSON.parse(frame.slice(6))).toEqual({ error: parts })
})
