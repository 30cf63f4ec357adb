import { CHAT_REQUEST } from '@sluice/wire/chat'
import { RESPONSES_REQUEST } from '@sluice/wire/responses'
import type { Shape } from '@sluice/wire/shape/define-shape'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../test/generators/characters.ts'
import { storableMessage, ComparedRequestTexts } from './provider-messages.ts'

function kept(
  message: string | undefined,
  request: unknown,
  fields: readonly string[] | null = [],
  shape: Shape = CHAT_REQUEST,
) {
  const body = Buffer.from(JSON.stringify(request))
  return storableMessage(
    message,
    new ComparedRequestTexts(() => ({
      body,
      shapeOf: () => shape,
      fields: fields ?? undefined,
      url: '/v1/x?note=a+note+in+the+query+of+this',
    })),
  )
}

const asked = (content: unknown): object => ({ model: 'm', messages: [{ role: 'user', content }] })

describe('the message of a provider', () => {
  test("a provider's error message that repeats nothing of the request is stored whole, and an absent one is stored empty", () => {
    expect(kept('Too many requests', asked('hi'))).toBe('Too many requests')
    expect(kept(undefined, asked('hi'))).toBe('')
  })

  test("a provider's error message is stored without any 24 or more consecutive characters of a string in the request", () => {
    const run = 'abcdefghijklmnopqrstuvwx'
    for (let before = 0; before < 26; before += 1) {
      const text = `${'.'.repeat(before)}${run},`
      expect(kept(`<${run}>`, { user: text })).toBe('<…>')
      expect(kept(`<${run.slice(1)}>`, { user: text })).toBe(`<${run.slice(1)}>`)
    }
    expect(kept('a note in the query of this', {})).toBe('…')
    expect(kept('the prompt of the form is here', {}, ['The prompt of the form is here'])).toBe('…')
    expect(kept(`about ${run}`, { model: run })).toBe('about …')
  })

  test("a provider's error message is stored without short texts of the conversation, but with names, types and roles", () => {
    expect(kept('what is a geheimnis?', asked('Geheimnis'))).toBe('what is a …?')
    expect(kept('what is a geheim?', asked('Geheim'))).toBe('what is a geheim?')
    expect(kept('no assistant_tool here', { tools: [{ name: 'assistant_tool' }] })).toBe(
      'no assistant_tool here',
    )
    const called = (text: string): object => ({
      messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'look_it_up', arguments: text } }] }],
    })
    expect(kept('look_it_up: Schneider', called('{"name":"Schneider"}'))).toBe('look_it_up: …')
    const input = [{ type: 'input_text', text: 'Schneider' }]
    expect(kept('input_text with Schneider', { input }, [], RESPONSES_REQUEST)).toBe('input_text with …')
    expect(kept('Schneider', { messages: [{ role: 'user', words_of_2030: 'Schneider' }] })).toBe('…')
  })

  const inCodes = (text: string): string =>
    text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const quotings: Readonly<Record<string, (text: string) => string>> = {
    raw: (text) => text,
    'in upper case': (text) => text.toUpperCase(),
    'JSON-escaped': (text) => JSON.stringify(text).slice(1, -1),
    'JSON-escaped twice': (text) => JSON.stringify(JSON.stringify(text)),
    '\\u-escaped': inCodes,
    'HTML-escaped': (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;'),
    'with other white space': (text) => text.replaceAll(/\s+/g, ' \n\t'),
  }
  const letters = fc.array(fc.constantFrom(...Array.from('abcdefgh ijklm nopqrs"<&äß我的密')), {
    minLength: 24,
    maxLength: 60,
  })
  test.each(Object.keys(quotings))(
    "a provider's error message is stored without any 24 consecutive letters of a prompt that it quotes %s",
    (name) => {
      fc.assert(
        fc.property(letters, (parts) => {
          const text = parts.join('').replaceAll(/\s+/g, ' ').trim()
          fc.pre(text.length >= 24)
          const said = kept(`{${quotings[name]?.(text) ?? ''}}`, asked(text))
          // What is left are the braces, and what an escape leaves of quotation marks.
          expect(said.replaceAll(/[{}\\"…]/g, '')).toBe('')
        }),
      )
    },
  )

  test("a provider's error message is stored as one line of at most 300 characters, whatever the request is", () => {
    const any = fc.string({ unit: anyCharacter, maxLength: 600 })
    fc.assert(
      fc.property(any, any, (message, text) => {
        const said = kept(message, asked(text))
        expect(said.length).toBeLessThanOrEqual(300)
        expect(said).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        expect(said.isWellFormed()).toBe(true)
      }),
    )
  })

  test("a provider's error message is not stored if the request is too large to compare, unreadable, or not in memory", () => {
    expect(kept('no', { messages: 'x'.repeat(1024 * 1024) })).toBe('')
    expect(kept('no', {}, null)).toBe('')
    const unreadable = new ComparedRequestTexts(() => ({
      body: Buffer.from('{'),
      shapeOf: () => CHAT_REQUEST,
      fields: [],
      url: '/',
    }))
    expect(storableMessage('no', unreadable)).toBe('')
  })

  test('an error message about JSON that the gateway refuses is stored without the strings of that JSON', () => {
    const words = new ComparedRequestTexts(() => ({
      body: Buffer.from('{"user":"x","user":"Geheimnis"}'),
      shapeOf: () => CHAT_REQUEST,
      fields: [],
      url: '/',
    }))
    expect(storableMessage('user is given twice: Geheimnis', words)).toBe('user is given twice: …')
  })

  test("comparing a provider's error message with the request takes time in proportion to the request", () => {
    const content = 'aaaaaaaaaaaaaaaaaaaaaaab'.repeat(40_000)
    expect(kept('a'.repeat(16_384), asked(content))).toBe('a'.repeat(300))
  })
})
