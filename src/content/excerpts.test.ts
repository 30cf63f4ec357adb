import { describe, expect, test } from 'vitest'
import type { ReadableTurn } from '@sluice/wire/readable-turns'
import { excerptWith, firstWords } from './excerpts.ts'

const said = (role: ReadableTurn['role'], text: string): ReadableTurn => ({
  role,
  parts: [{ kind: 'text', text }],
})

describe('an excerpt with searched words', () => {
  test('has the words in any case, and says where they are', () => {
    const excerpt = excerptWith([said('user', 'The STRAẞE is long')], 'straße')
    expect(excerpt).toEqual({ role: 'user', text: 'The STRAẞE is long', at: 4, length: 6 })
  })

  test('takes signs as they stand', () => {
    expect(excerptWith([said('user', 'a+b')], 'a.b')).toBeUndefined()
    expect(excerptWith([said('user', 'price: $1 (net)')], '$1 (')).toMatchObject({ at: 7, length: 4 })
  })

  test('is that of the last turn that has them', () => {
    const turns = [said('user', 'whale'), said('assistant', 'A whale.'), said('user', 'thanks')]
    expect(excerptWith(turns, 'whale')).toMatchObject({ role: 'assistant', at: 2 })
  })

  test('has at most 80 characters before the words and 160 after their beginning and length', () => {
    const excerpt = excerptWith([said('user', `${'x'.repeat(500)}whale${'y'.repeat(500)}`)], 'whale')
    expect(excerpt).toEqual({
      role: 'user',
      text: `${'x'.repeat(80)}whale${'y'.repeat(160)}`,
      at: 80,
      length: 5,
    })
  })

  test('is found in thinking, in tool calls, in their results and in searches', () => {
    const parts: ReadableTurn['parts'] = [
      { kind: 'thinking', text: 'one' },
      { kind: 'tool-call', name: 'two', input: '{"a":"three"}' },
      { kind: 'tool-result', parts: [{ kind: 'text', text: 'four' }] },
      { kind: 'search', query: 'five', pages: [{ url: 'http://six', title: 'seven' }] },
      { kind: 'opaque', json: '{"eight":8}' },
    ]
    for (const words of ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'])
      expect(excerptWith([{ role: 'assistant', parts }], words), words).toBeDefined()
  })

  test('divides no character', () => {
    const text = excerptWith([said('user', `${'😀'.repeat(60)}.whale`)], 'whale')?.text ?? ''
    expect(text.isWellFormed()).toBe(true)
  })
})

describe('the first words of a conversation', () => {
  test('are those of the user, not of the system', () => {
    expect(
      firstWords([said('system', 'Be brief.'), said('user', ' Hello '), said('user', 'Again')]),
    ).toMatchObject({
      text: 'Hello',
    })
  })

  test('are not a reminder in tags, unless there is nothing else', () => {
    const reminder = said('user', '<system-reminder>be quiet</system-reminder>')
    expect(firstWords([reminder, said('user', 'Hello')])?.text).toBe('Hello')
    expect(firstWords([reminder])?.text).toContain('reminder')
    expect(firstWords([said('assistant', 'Hello')])).toBeUndefined()
  })
})
