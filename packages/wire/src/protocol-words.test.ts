import { expect, test } from 'vitest'
import { isMemberName, isTerm } from './protocol-words.ts'

test.each([
  'gpt-4o',
  'user',
  '1024x1024',
  '16:9',
  'image/png',
  'text/plain; charset=utf-8',
  'HARM_CATEGORY_X',
  'reasoning.encrypted_content',
  'models/x*',
  '',
])('%j looks like a word of a protocol', (value) => expect(isTerm(value)).toBe(true))
test.each(['two words', 'ann@example.com', 'x'.repeat(65), 'a\nb', '{"a":1}', 'c"d', 'ü', 'a,b'])(
  '%j does not look like a word of a protocol',
  (value) => {
    expect([isTerm(value), isMemberName(value)]).toEqual([false, false])
  },
)
