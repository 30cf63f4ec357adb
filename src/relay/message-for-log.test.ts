import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../test/generators/characters.ts'
import { messageForLog } from './message-for-log.ts'

function logged(message: string | undefined, request: unknown): string | undefined {
  return messageForLog(message, Buffer.from(JSON.stringify(request)))
}

describe('an upstream’s message in the log', () => {
  test('a message that repeats nothing is logged unchanged, and no message is logged as none', () => {
    expect(logged('Too many requests', { messages: [] })).toBe('Too many requests')
    expect(logged(undefined, {})).toBeUndefined()
  })

  test('a message is logged without runs of twelve characters that a text of the request has', () => {
    // 'abcdefghijkl' are twelve characters; they are found at every position in the request.
    for (let before = 0; before < 14; before++) {
      const prompt = `${'.'.repeat(before)}abcdefghijkl,`
      expect(logged('<abcdefghijkl>', { messages: [{ content: prompt }] })).toBe('<[…]>')
      expect(logged('<abcdefghijk>', { messages: [{ content: prompt }] })).toBe('<abcdefghijk>')
    }
    expect(logged('<one long secret text>', { system: [{ text: 'one long secret text' }] })).toBe('<[…]>')
    expect(logged('abcdefghijkl and abcdefghijkl', { user: 'abcdefghijkl' })).toBe('[…] and […]')
  })

  test('a message is logged without what is quoted with escapes, or was sent with them', () => {
    const content = 'line one\n"two" \\ drei: schön'
    const escaped = JSON.stringify(content)
    const codes = Array.from('schön ist es').map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
    expect(logged(`<${escaped}>`, { messages: [{ content }] })).toBe('<"[…]">')
    expect(logged(`<${JSON.stringify(escaped).slice(1, -1)}>`, { user: content })).toBe('<\\"[…]\\">')
    expect(logged(`<${codes.join('')}>`, { user: 'schön ist es' })).toBe('<[…]>')
    expect(logged('<schön ist es>', { user: codes.join('') })).toBe('<[…]>')
  })

  test('a message is logged without four CJK characters, six of two bytes, or three emoji that a text has', () => {
    expect(logged('<我的密码是什么>', { user: '我的密码' })).toBe('<[…]是什么>')
    expect(logged('<我的密>', { user: '我的密码' })).toBe('<我的密>')
    expect(logged('<пароль>', { user: 'мой пароль' })).toBe('<[…]>')
    expect(logged('<😀😁😂>', { user: '😀😁😂' })).toBe('<[…]>')
    expect(logged('<😀😁>', { user: '😀😁😂' })).toBe('<😀😁>')
  })

  const inCodes = (text: string): string =>
    text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const quotings: Readonly<Record<string, (text: string) => string>> = {
    raw: (text) => text,
    'JSON-escaped': (text) => JSON.stringify(text).slice(1, -1),
    '\\u-escaped': inCodes,
    'JSON-escaped in ASCII': (text) =>
      JSON.stringify(text)
        .slice(1, -1)
        .replaceAll(/[^ -~]/g, inCodes),
  }
  // Excludes words that the log itself adds, because they would be found in every prompt that contains them.
  const prompt = fc
    .oneof(
      fc.string({ unit: anyCharacter, minLength: 1, maxLength: 60 }),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
      fc.string({ unit: fc.constantFrom('a', 'n', '"', '\\', '\n', 'u', '0', '我', '的'), maxLength: 60 }),
    )
    .filter((text) => !text.includes('…'))
  test.each(Object.keys(quotings))(
    'a message is logged without twelve bytes of any prompt that is quoted %s',
    (name) => {
      fc.assert(
        fc.property(prompt, (text) => {
          const quoted = quotings[name]?.(text) ?? ''
          const said = logged(`It says: <${quoted}>.`, { messages: [{ content: text }] }) ?? ''
          const characters = Array.from(text)
          for (let from = 0; from < characters.length; from++) {
            let run = ''
            for (let at = from; at < characters.length && Buffer.byteLength(run) < 12; at++)
              run += characters[at]
            if (Buffer.byteLength(run) >= 12) expect(said).not.toContain(quotings[name]?.(run))
          }
        }),
      )
    },
  )

  test('a message is logged with the names of the model and fields that it is about', () => {
    const request = { model: 'gpt-9-turbo-preview', max_completion_tokens: 5, messages: [] }
    expect(logged('gpt-9-turbo-preview does not take max_completion_tokens', request)).toBe(
      'gpt-9-turbo-preview does not take max_completion_tokens',
    )
    expect(logged('gpt-9-turbo-preview', { messages: [{ content: 'what is gpt-9-turbo-preview' }] })).toBe(
      '[…]',
    )
  })

  test('a message is logged as one line of visible characters', () => {
    expect(logged('a\r\n\t\u0000\u0085\u200b\u2028\u{e0001}b', {})).toBe(
      'a\\u000d\\u000a\\u0009\\u0000\\u0085\\u200b\\u2028\\u{e0001}b',
    )
  })

  test('a message is logged with at most 500 characters, and never half of one', () => {
    expect(logged('x'.repeat(600), {})).toBe('x'.repeat(500))
    const cut = logged(`${'x'.repeat(499)}😀`, {}) ?? ''
    expect(cut).toHaveLength(500)
    expect(cut.isWellFormed()).toBe(true)
  })

  test('a message is not logged where the request is too large to be compared with it, or cannot be read', () => {
    expect(logged('no', { messages: 'x'.repeat(1024 * 1024) })).toBeUndefined()
    expect(messageForLog('no', Buffer.from('{'))).toBeUndefined()
  })

  test('a message takes time in proportion to the request, whatever both repeat', () => {
    const content = 'aaaaaaaaaaab'.repeat(80_000)
    expect(logged('a'.repeat(4_096), { messages: [{ content }] })).toBe('a'.repeat(500))
  })
})
