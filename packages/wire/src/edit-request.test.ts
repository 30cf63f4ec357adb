import { expect, test } from 'vitest'
import { settingsOf } from '../../../test/samples/upstream-settings.ts'
import { editRequest } from './edit-request.ts'
import { scanObject } from './json/json-scan.ts'

const GOOGLE = 'https://generativelanguage.googleapis.com/v1beta/openai'
const NONE = { remove: [], replace: new Map<string, string>() }

function edited(text: string, baseUrl: string): { text: string; dropped: readonly string[] } {
  const { body, dropped } = editRequest(
    scanObject(Buffer.from(text)),
    settingsOf({ base_url: baseUrl }),
    false,
    NONE,
  )
  return { text: body.toString(), dropped }
}

test("extra_body of a chat request keeps only settings of thinking, and these only at Google's own address", () => {
  const own = '{"extra_body":{ "google": {"thinking_config":{"thinking_budget":1.0}} }}'
  expect(edited(own, GOOGLE)).toEqual({ text: own, dropped: [] })
  const more =
    '{"extra_body":{"model":"dear","google":{"cached_content":"x","thinking_config":{"thinking_budget":1.0}}}}'
  expect(edited(more, GOOGLE)).toEqual({
    text: '{"extra_body":{"google":{"thinking_config":{"thinking_budget":1.0}}}}',
    dropped: ['extra_body'],
  })
  expect(edited('{"extra_body":{"google":{}}}', GOOGLE)).toEqual({ text: '{}', dropped: ['extra_body'] })
  expect(edited(own, 'https://api.example.com/v1')).toEqual({ text: '{}', dropped: ['extra_body'] })
  expect(edited(own, 'https://googleapis.com.example.com/v1').text).toBe('{}')
})

test('the field provider of OpenRouter is removed from a request if it is not an object with members', () => {
  for (const value of ['"x"', '7', '[{"ignore":["a"]}]', 'null', '{}'])
    expect(edited(`{"provider":${value}}`, GOOGLE)).toEqual({ text: '{}', dropped: ['provider'] })
})
