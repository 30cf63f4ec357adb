import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'

let fixture: DemoFixture
let client: OpenAI
beforeAll(async () => {
  fixture = await startDemoFixture()
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const TOOLS: OpenAI.Responses.Tool.Mcp[] = [
  { type: 'mcp', server_label: 'demo', server_url: '/mcp', allowed_tools: ['web_search'] },
]

test.each(['demo-responses', 'demo-chat', 'demo-claude', 'demo-gemini'])(
  'the models of the demo use its tools with the official OpenAI client: %s',
  async (model) => {
    const stream = client.responses.stream({ model, input: 'Search the web for lighthouses.', tools: TOOLS })
    let calls = 0
    stream.on('response.mcp_call.completed', () => void (calls += 1))
    const { output, output_text, status } = await stream.finalResponse()
    expect(status).toBe('completed')
    expect(calls).toBe(1)
    expect(output).toContainEqual(
      expect.objectContaining({
        type: 'mcp_call',
        name: 'web_search',
        output: expect.stringContaining('https://example.com/all'),
      }),
    )
    expect(output_text).not.toBe('')
  },
)
