import { scanObject } from '@sluice/wire/json/json-scan'
import { expect, test } from 'vitest'
import { ALL_CODECS } from './convert-through.ts'

const parameters = { type: 'object', properties: {} }
const CHAT = { type: 'function', function: { name: 'f', parameters } }
const RESPONSES = { type: 'function', name: 'f', parameters }
const ASKED = {
  chat: { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  responses: { model: 'm', input: 'hi' },
  gemini: { model: 'm', contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
} as const
const SAID = { type: 'message', role: 'assistant', content: 'x' }
const CALLED = { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] }
const RESULT = { name: 'f', response: { output: 'a' } }
const results = (given: object) => ({
  contents: [...ASKED.gemini.contents, CALLED, { role: 'user', parts: [{ functionResponse: given }] }],
})
const declares = (given: object) => ({ tools: [{ functionDeclarations: [{ name: 'f', ...given }] }] })

test.each([
  ['chat', { tools: [{ ...CHAT, other: 1 }] }, ['tools.unknown']],
  ['chat', { tools: [{ ...CHAT, function: { ...CHAT.function, other: 1 } }] }, ['tools.unknown']],
  ['chat', { tools: [{ type: 'custom', custom: { name: 'f', other: 1 } }] }, ['tools.unknown']],
  ['chat', { tools: [{ ...CHAT, function: { ...CHAT.function, description: 'd', strict: true } }] }, []],
  ['responses', { tools: [{ ...RESPONSES, defer_loading: true }] }, ['tools.unknown']],
  ['responses', { tools: [{ type: 'custom', name: 'f', other: 1 }] }, ['tools.unknown']],
  ['responses', { tools: [{ type: 'shell', environment: { type: 'local' } }] }, []],
  ['responses', { tools: [{ ...RESPONSES, description: 'd', strict: false, other: null }] }, []],
  ['responses', { tools: [CHAT] }, []],
  ['responses', { input: [{ ...SAID, phase: 'commentary' }] }, ['input.phase']],
  ['responses', { input: [{ ...SAID, phase: null }] }, []],
  ['gemini', declares({ behavior: 'NON_BLOCKING' }), ['tools.unknown']],
  ['gemini', declares({ description: 'd', parameters: { type: 'OBJECT' } }), []],
  ['gemini', declares({ description: 'd', parameters_json_schema: parameters }), []],
  ['gemini', declares({ response: {} }), ['tools.response']],
  ['gemini', { toolConfig: { includeServerSideToolInvocations: true } }, ['toolConfig']],
  ['gemini', { toolConfig: { function_calling_config: { mode: 'AUTO' } } }, []],
  ['gemini', results({ ...RESULT, scheduling: 'SILENT' }), ['parts']],
  ['gemini', results({ ...RESULT, will_continue: true }), ['parts']],
  ['gemini', results({ ...RESULT, id: 'c', parts: [] }), []],
] as const)(
  'what a conversion leaves out of tools, messages and results is named: %s, %j is %j',
  (dialect, fields, expected) => {
    const dropped = new Set<string>()
    const body = Buffer.from(JSON.stringify({ ...ASKED[dialect], ...fields }))
    ALL_CODECS[dialect].decodeRequest(scanObject(body), dropped)
    expect([...dropped]).toEqual(expected)
  },
)
