import { expect, test } from 'vitest'
import { serverSchemas } from './chat-servers.ts'

const CLOSED = '{"type":"object","properties":{},"required":[],"additionalProperties":false}'
const NULLABLE =
  '{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}'
const OPEN = '{"type":"object","properties":{"a":{"type":"string"}}}'

test.each([
  ['https://api.openai.com/v1', 'gpt-5', [true, true, false], true],
  ['https://unknown.example/v1', 'm', [true, true, false], true],
  ['https://api.groq.com/openai/v1', 'openai/gpt-oss-120b', [true, true, false], true],
  ['https://api.groq.com/openai/v1', 'llama-4', [false, false, false], true],
  ['https://api.cerebras.ai/v1', 'gpt-oss-120b', [true, false, false], true],
  ['https://api.mistral.ai/v1', 'mistral-small', [true, true, true], true],
  ['https://api.x.ai/v1', 'grok-5', [true, true, true], true],
  ['https://api.deepseek.com', 'deepseek-chat', [false, false, false], false],
])('schemas are enforced at %s for %s as the provider documents', (baseUrl, model, enforced, takesFormat) => {
  const server = serverSchemas(baseUrl)
  expect([CLOSED, NULLABLE, OPEN].map((schema) => server.enforces(schema, model))).toEqual(enforced)
  expect(server.takesFormat).toBe(takesFormat)
})
