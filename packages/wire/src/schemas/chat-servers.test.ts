import { expect, test } from 'vitest'
import { serverSchemas } from './chat-servers.ts'

const CLOSED = '{"type":"object","properties":{},"required":[],"additionalProperties":false}'
const NULLABLE =
  '{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}'
const OPEN = '{"type":"object","properties":{"a":{"type":"string"}}}'

test.each([
  ['api.openai.com', 'gpt-5', [true, true, false], true],
  ['unknown.example', 'm', [true, true, false], true],
  ['api.groq.com', 'openai/gpt-oss-120b', [true, true, false], true],
  ['api.groq.com', 'llama-4', [false, false, false], true],
  ['api.cerebras.ai', 'gpt-oss-120b', [true, false, false], true],
  ['api.mistral.ai', 'mistral-small', [true, true, true], true],
  ['api.x.ai', 'grok-5', [true, true, true], true],
  ['api.moonshot.ai', 'kimi-k3', [true, true, true], true],
  ['api.deepseek.com', 'deepseek-chat', [false, false, false], false],
])('schemas are enforced at %s for %s as the provider documents', (host, model, enforced, takesFormat) => {
  const server = serverSchemas(host)
  expect([CLOSED, NULLABLE, OPEN].map((schema) => server.enforces(schema, model))).toEqual(enforced)
  expect(server.takesFormat).toBe(takesFormat)
})
