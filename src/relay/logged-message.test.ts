import { describe, expect, test } from 'vitest'
import { loggedMessage } from './logged-message.ts'

function logged(message: string | undefined, request: unknown): string | undefined {
  return loggedMessage(message, Buffer.from(JSON.stringify(request)))
}

describe('an upstream’s message in the log', () => {
  test('is as it came where it repeats nothing, and absent where there is none', () => {
    expect(logged('Too many requests', { messages: [] })).toBe('Too many requests')
    expect(logged(undefined, {})).toBeUndefined()
  })

  test('is without every run of twelve characters that a text of the request has', () => {
    // 'abcdefghijkl' are twelve characters, wherever they stand in the request.
    for (let before = 0; before < 14; before++) {
      const prompt = `${'.'.repeat(before)}abcdefghijkl,`
      expect(logged('<abcdefghijkl>', { messages: [{ content: prompt }] })).toBe('<[…]>')
      expect(logged('<abcdefghijk>', { messages: [{ content: prompt }] })).toBe('<abcdefghijk>')
    }
    expect(logged('<one long secret text>', { system: [{ text: 'one long secret text' }] })).toBe('<[…]>')
    expect(logged('abcdefghijkl and abcdefghijkl', { user: 'abcdefghijkl' })).toBe('[…] and […]')
  })

  test('names the model and the fields that it is about', () => {
    const request = { model: 'gpt-9-turbo-preview', max_completion_tokens: 5, messages: [] }
    expect(logged('gpt-9-turbo-preview does not take max_completion_tokens', request)).toBe(
      'gpt-9-turbo-preview does not take max_completion_tokens',
    )
    expect(logged('gpt-9-turbo-preview', { messages: [{ content: 'what is gpt-9-turbo-preview' }] })).toBe(
      '[…]',
    )
  })

  test('is one line of visible characters', () => {
    expect(logged('a\r\n\t\u0000\u0085\u200b\u2028\u{e0001}b', {})).toBe(
      'a\\u000d\\u000a\\u0009\\u0000\\u0085\\u200b\\u2028\\u{e0001}b',
    )
  })

  test('has 500 characters at most, and never half of one', () => {
    expect(logged('x'.repeat(600), {})).toBe('x'.repeat(500))
    const cut = logged(`${'x'.repeat(499)}😀`, {}) ?? ''
    expect(cut).toHaveLength(500)
    expect(cut.isWellFormed()).toBe(true)
  })

  test('is left out where the request is too large to be compared with it, or cannot be read', () => {
    expect(logged('no', { messages: 'x'.repeat(1024 * 1024) })).toBeUndefined()
    expect(loggedMessage('no', Buffer.from('{'))).toBeUndefined()
  })

  test('takes time in proportion to the request, whatever both repeat', () => {
    const content = 'aaaaaaaaaaab'.repeat(80_000)
    expect(logged('a'.repeat(4_096), { messages: [{ content }] })).toBe('a'.repeat(500))
  })
})
