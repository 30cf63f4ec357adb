import { expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../../../test/fixtures/pace.ts'
import { parseChatReply, ToolCallDecoder } from './tool-call-decoder.ts'

const OBJECT = '{ "10": 9007199254740993, "2": [1.0, {"a":"}"}] ,"10":0}'
const CALL = (args: string): string => `{"id":"c","function":{"name":"f","arguments":${args}}}`

/** The arguments of the first choice's calls, including that in `function_call`. */
function read(text: string): unknown[] {
  const choices = (parseChatReply(text)?.['choices'] ?? []) as { message?: Message; delta?: Message }[]
  const [choice] = choices
  const { tool_calls: calls = [], function_call: legacy } = choice?.message ?? choice?.delta ?? {}
  return [...calls.map((call) => call.function), ...(legacy ? [legacy] : [])].map((one) => one.arguments)
}

interface Message {
  readonly tool_calls?: readonly { readonly function: { readonly arguments: unknown } }[]
  readonly function_call?: { readonly arguments: unknown }
}

test.each(['message', 'delta'])(
  'tool arguments that are an object become the exact text of this object, in a chat %s',
  (key) => {
    const calls = `"tool_calls":[${CALL('"{}"')},${CALL(OBJECT)},${CALL('null')},${CALL(OBJECT)}]`
    const answer = `{"id":"x","choices":[{"${key}":{${calls},"function_call":{"name":"g","arguments":${OBJECT}}}}]}`
    expect(read(answer)).toEqual(['{}', OBJECT, null, OBJECT, OBJECT])
  },
)

test('tool arguments in a chat response that are nested more deeply than the JSON scanner permits are read completely', () => {
  const deep = `{"a":${'['.repeat(600)}${']'.repeat(600)}}`
  expect(read(`{"choices":[{"message":{"tool_calls":[${CALL(deep)}]}}]}`)).toEqual([deep])
})

test.each(['', '[]', 'null', '{"choices":', '"x"'])(
  'a body that is not a chat response is not read as one: %j',
  (text) => {
    expect(parseChatReply(text)).toBeUndefined()
  },
)

test.each([
  '{}',
  '{"choices":null}',
  '{"choices":[null,{"message":[]},{"message":{"tool_calls":{}}},{"delta":{"tool_calls":[null,{"function":[]}]}}]}',
])('a chat response without tool arguments that are an object is read as JSON.parse reads it: %s', (text) => {
  expect(parseChatReply(text)).toEqual(JSON.parse(text))
})

test('many tool calls whose arguments are cut off are read in a time in proportion to their number', async () => {
  const calls = (size: number): object[] =>
    Array.from({ length: size }, (_, index) => ({ index, function: { name: 'f', arguments: '{' } }))
  const read = (pieces: readonly object[]): void => {
    const decoder = new ToolCallDecoder({ emit() {}, begin: () => 0, mintId: String })
    for (const piece of pieces) decoder.read({ ...piece })
  }
  expect(await growthOf(1_000, calls, read)).toBeLessThan(LINEAR_GROWTH)
})
